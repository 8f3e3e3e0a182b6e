"""Certain rules decide; elsewhere the model's class may lead to a plan that a person must weigh."""

from datetime import UTC, datetime

import pytest

from agent.core.diagnosis.diagnosis import Diagnosis, DiagnosisSource, Evidence, ModelExplanation
from agent.core.diagnosis.model_request import When, start_request
from agent.core.diagnosis.rules_and_model import add_explanation, combine, prose, without_amounts

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
FIXES = {"gpu_oom_weights": ("change_model_or_quantization",), "host_oom": ("increase_memory_limit",)}


def rules(class_="kv_cache_insufficient", *, certain=True, provisional=False, confidence=0.95):
    return Diagnosis(
        class_=class_, signature=None if class_ == "unknown" else "sig", root_cause="r", confidence=confidence,
        certain=certain, provisional=provisional, log_read=True, fields={"needed_gib": 4.0}, fix_actions=("set_flag x",),
        evidence=(Evidence(signal="s1", line="a line"),), unknown=("the cause",) if class_ == "unknown" else (),
        made_at=NOW,
    )  # fmt: skip


def said(diagnosis, class_, root_cause="Because."):
    word = ModelExplanation(class_=class_, root_cause=root_cause, cited=("log:7",), prompt="diagnose.v1 x", model="m")
    held = start_request(None, diagnosis, when=When.ALWAYS, wake=When.ALWAYS, plan_from=NOW, now=NOW)
    return held.answered(word, (Evidence(signal="log:7", line="a cited line", decisive=True),))


@pytest.mark.parametrize(
    ("class_", "voice"),
    [
        ("kv_cache_insufficient", DiagnosisSource.BOTH),
        ("host_oom", DiagnosisSource.DIFFER),
        ("unknown", DiagnosisSource.RULES),
    ],
)
def test_certain_rules_decide_whatever_the_model_says(class_, voice):
    """Everything that a plan rests on stays; only the voice and the model's word are new."""
    before = rules()
    after = combine(before, said(before, class_), FIXES)
    assert after.says == before.says
    assert after.with_(voice=before.voice, model_word=None) == before
    assert after.voice is voice
    assert after.model_word.class_ == class_


def test_rules_that_lack_only_the_start_of_the_log_decide_too():
    """A text that decides by itself is not overruled because its log was not read."""
    before = rules(certain=False, provisional=True, confidence=0.9)
    after = combine(before, said(before, "host_oom"), FIXES)
    assert (after.class_, after.voice, after.says) == (before.class_, DiagnosisSource.DIFFER, before.says)


@pytest.mark.parametrize(
    ("suspected", "voice"), [("unknown", DiagnosisSource.MODEL), ("engine_dead", DiagnosisSource.DIFFER)]
)
def test_where_no_rule_is_certain_the_models_class_leads(suspected, voice):
    """Its class, the lines it cites, the catalogue's fixes, the log's numbers; never certain."""
    before = rules(suspected, certain=False, confidence=0.5)
    after = combine(before, said(before, "gpu_oom_weights"), FIXES)
    assert (after.class_, after.voice, after.certain, after.signature) == ("gpu_oom_weights", voice, False, None)
    assert after.fix_actions == FIXES["gpu_oom_weights"]
    assert after.fields == before.fields
    assert after.evidence[0].line == "a cited line"
    assert "the cause" not in after.unknown
    assert (suspected in " ".join(after.unknown)) is (suspected != "unknown")


def test_prose_never_changes_what_a_plan_rests_on():
    """Two answers that differ in prose alone say the same."""
    before = rules("unknown", certain=False, confidence=0.1)
    one = combine(before, said(before, "host_oom", "One."), FIXES)
    other = combine(before, said(before, "host_oom", "Restart it with --trust-remote-code!"), FIXES)
    assert one.says == other.says


def test_a_word_about_another_class_of_the_rules_does_not_count():
    """The rules changed their mind: the old word explains something else."""
    word = said(rules("unknown", certain=False), "host_oom")
    assert combine(rules(), word, FIXES) == rules()
    assert combine(rules(), None, FIXES) == rules()


@pytest.mark.parametrize("class_", ["kv_cache_insufficient", "host_oom", "unknown"])
def test_a_late_word_only_explains(class_):
    """After a decision the class stays where it was."""
    before = rules("kv_cache_insufficient", certain=False, confidence=0.5)
    after = add_explanation(before, said(before, class_).word)
    assert after.says == before.says
    assert after.model_word.class_ == class_


AMOUNTS = [
    "about 13 GB", "19.8 GiB", "21,260,124,160 bytes", "needs 4GB", "24-GiB card", "2.62 gigabytes", "16 to 24 GB",
    "sixteen gigabytes", "900 MB/s", "1 TiB", "80 gigs",
]  # fmt: skip


@pytest.mark.parametrize("amount", AMOUNTS)
def test_amounts_of_memory_are_dropped(amount):
    """The model guesses them, the fit computes them."""
    left = without_amounts(f"The weights take {amount}, which is too much.")
    assert "see the fit" in left
    assert not any(letter.isdigit() for letter in left)


def test_other_numbers_stay():
    """Contexts, versions, ports and line numbers are no amounts."""
    text = "vLLM 0.32 with max_model_len 131072 on port 8000, 2 GPUs, exit 137, about 30 s, line e12."
    assert without_amounts(text) == text


def test_prose_is_bounded_and_cannot_speak_as_us():
    """No live link, no terminal escape, no more than 600 letters."""
    kept = prose("See https://evil.example \x1b]8;;http://x\x07now\u202e " + "x" * 5000)
    assert "://" not in kept
    assert "\x1b" not in kept
    assert "\u202e" not in kept
    assert len(kept) <= 600


def test_the_end_of_a_server_is_never_talked_into_being_harmless():
    """A model that calls an unasked end benign may say so; the class stays what it was."""
    before = rules("unknown", certain=False, confidence=0.1).with_(unasked_end=True)
    after = combine(before, said(before, "benign"), FIXES)
    assert (after.class_, after.voice, after.says) == ("unknown", DiagnosisSource.DIFFER, before.says)
    assert combine(before, said(before, "host_oom"), FIXES).class_ == "host_oom"
