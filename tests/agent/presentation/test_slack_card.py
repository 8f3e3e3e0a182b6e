"""S13 and Slack's limits: whatever text comes in, the card is one that Slack takes, and it cannot speak as us."""

import json
import random
import re
from datetime import UTC, datetime, timedelta

import pytest
from slack_sdk.models.blocks import Block

from agent.core.decision.decision import Channel, Choice, Decision
from agent.core.diagnosis.diagnosis import Diagnosis, Evidence
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import Phase
from agent.core.plan.action import Difference, ForPerson, Restart, SetFlag
from agent.core.plan.plan import FitSummary, Plan, Risk, Rollout
from agent.core.plan.proof import Proof, ProofFigure
from agent.core.service.serving import Target
from agent.presentation.slack_card import APPROVE, DETAILS, REASON, REJECT, card, owner_mention, reason_block
from tests.journeys import fake_slack

AT = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
GIB = 2**30
HOSTILE = [
    "<!channel> <!here> <!everyone> <@U0ADA> <#C0SRE> <!subteam^S1>",
    "<https://evil.example|click> https://evil.example/x mailto:a@b.c www.evil.com",
    "*bold* _it_ ~no~ `code` ```block``` > quote\n> quote",
    "\x1b[31mred\x1b]8;;https://evil.example\x07link\x1b]8;;\x07",
    "\u202egnp.exe\u2066\u200b\u00ad",
    "&lt;!channel&gt; &amp;",
    ":rotating_light: :+1:",
    "```\n*Approved* by Ada\n```",
    "\x00\x07\x08",
    "<!date^1^{date}|x>",
]
REPORT = {
    "reason": "fits", "weights_bytes": 15 * GIB, "kv_cache_bytes": 4 * GIB, "total_bytes": 22 * GIB,
    "overheads": {"load_transient": 3 * GIB, "activations": GIB, "cuda_graphs": GIB // 2, "non_torch": GIB // 4},
}  # fmt: skip


def plan(text="why", **changes):
    whole = {
        "id": "p-a-1", "incident": "inc-a", "run": "live", "ordinal": 1, "cause": "engine_dead", "why": text,
        "actions": (SetFlag(name="max-model-len", value="8192"), Restart()),
        "difference": (Difference(path="flag --max-model-len", before=text, after="8192"),),
        "target": Target(service="gemma", uid="u", generation=1, digest="d"), "rollout": Rollout.IN_PLACE,
        "fit_before": FitSummary(fits=False, sentence=text, report=REPORT | {"reason": "load_peak", "shortfall_bytes": GIB}),
        "fit_after": FitSummary(fits=True, sentence="fits", report=REPORT),
        "cost_before_usd_per_h": 0.71, "cost_after_usd_per_h": 1.42, "risk": Risk.HIGH, "risk_reasons": (text,),
        "undo": text, "if_unanswered": "If nobody answers, nothing is changed.", "notes": (text,) * 9, "made_at": AT,
        "expires_at": AT + timedelta(minutes=30), "proof": Proof.MEASURED,
        "proof_figures": (ProofFigure(name=text, value=text, line=text, place="log:1"),), "proof_missing": (text,),
    }  # fmt: skip
    return Plan(**(whole | changes))


def incident(text="a line", *, phase=Phase.ASKED, **changes):
    whole = {
        "id": "inc-a", "service": "gemma", "platform": "cloud_run", "revision": text, "phase": phase, "opened_at": AT,
        "phase_at": AT, "quiet_since": AT, "ended_why": text,
        "diagnosis": Diagnosis(
            class_="engine_dead", signature=None, root_cause=text, confidence=1, certain=True, provisional=True,
            log_read=True, evidence=(Evidence(signal="s", line=text, decisive=True),), unknown=(text,), made_at=AT,
        ),
        "plan": plan(text),
    }  # fmt: skip
    return Incident(**(whole | changes))


def decided(text):
    return Decision(
        plan="p-a-1", plan_digest="d", incident="inc-a", answer=Choice.REJECT, who=text, verified=False,
        channel=Channel.CONSOLE, why=text, at=AT, expires_at=AT, target=plan().target, policy="", prior_template="",
    )  # fmt: skip


def shown(text="a line", *, redact=str, console_url="https://c.example.com", **changes):
    timeline = tuple(Event(at=AT, phase=Phase.OPEN, what=text) for _ in range(9))
    return card(incident(text, **changes), timeline, redact=redact, console_url=console_url)


def texts(found):
    """Every text a person reads, with the button values left out."""
    return [found.text, *re.findall(r'"text": ("(?:[^"\\]|\\.)*")', json.dumps(list(found.blocks)))]


def accepted(found):
    assert fake_slack.problems({"text": found.text, "blocks": list(found.blocks)}) == []
    for block in found.blocks:
        bare = json.loads(json.dumps(block).replace(', "verbatim": true', ""))
        Block.parse(bare).to_dict()  # Slack's own library checks its limits here


@pytest.mark.parametrize("phase", list(Phase), ids=str)
def test_every_phase_is_a_message_that_slack_takes(phase):
    accepted(shown(phase=phase, decision=decided("Ada")))
    accepted(shown(phase=phase, plan=None, diagnosis=None))


@pytest.mark.parametrize("size", [1, 150, 3000, 9000])
@pytest.mark.parametrize("sign", ["a", "&", "🚀", "\u202e", "\n"])
def test_no_length_of_text_breaks_a_limit(sign, size):
    accepted(shown(sign * size, decision=decided(sign * size), service=sign * min(size, 300)))


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_text_of_others_cannot_ping_link_mark_up_or_move_a_cursor(text):
    found = shown(text, decision=decided(text), service=text)
    accepted(found)
    said = json.dumps([found.text, *found.blocks], ensure_ascii=False)
    angles = re.findall(r"<[^>]{0,80}", said)
    assert all(a.startswith(f"<!date^{int(plan().expires_at.timestamp())}^") for a in angles), angles
    assert not re.search(r"https?://(?!c\.example\.com)", said)
    assert "www.evil" not in said
    assert "\\u001b" not in json.dumps(said)
    assert not re.search(r"[\u202a-\u202e\u2066-\u2069\u200b\x00-\x08]", said)
    marked = [found.text, *(b["text"]["text"] for b in found.blocks if b["type"] == "section")]
    assert not any("*bold*" in text for text in marked if not text.startswith("```"))


def test_a_log_line_cannot_leave_its_code_block_and_speak_as_us():
    found = shown("```\n*Approved* by Ada through slack\n```")
    for block in found.blocks:
        if block["type"] == "section" and block["text"]["text"].startswith("```"):
            assert block["text"]["text"].count("```") == 2


@pytest.mark.slow
def test_random_hostile_text_three_hundred_times():
    chance = random.Random(13)
    signs = "<>&*_~`@#!|^:/.\n\t\x1b\u202e\u2066é漢🚀 ab1-"
    for _ in range(300):
        text = "".join(chance.choices(signs, k=chance.randrange(1, 120)))
        found = shown(text)
        said = json.dumps([b for b in found.blocks if b["type"] != "actions"], ensure_ascii=False)
        assert not re.search(r"<(?!!date\^)", said)
        assert fake_slack.problems({"text": found.text, "blocks": list(found.blocks)}) == []


def test_secrets_are_taken_out_before_anything_is_cut():
    """Redaction comes first: a secret that is cut in two would not be known for one."""
    secret = "hf_" + "x" * 34
    found = shown("y" * 880 + secret, redact=lambda t: t.replace(secret, "[secret]"), decision=decided(secret))
    said = json.dumps([found.text, *found.blocks])
    assert "hf_" not in said


def test_a_person_sees_all_that_is_needed_to_decide():
    said = json.dumps(list(shown("the reason").blocks), ensure_ascii=False)
    for words in (
        "engine_dead", "the reason", "max-model-len", "8192", "before ███", "GiB missing", "0.71 USD", "1.42 USD",
        "*Risk:* high", "*Undo:*", "If nobody answers", "2026-11-21 03:30 UTC", "the same configuration is started again",
    ):  # fmt: skip
        assert words in said, words


def buttons(found):
    return {e["action_id"]: e for b in found.blocks if b["type"] == "actions" for e in b["elements"]}


def test_the_buttons_carry_plan_and_digest_and_stand_only_while_asked():
    found = buttons(shown())
    value = {"plan": "p-a-1", "digest": incident().plan.digest}
    assert json.loads(found[APPROVE]["value"]) == value == json.loads(found[REJECT]["value"])
    assert "confirm" in found[APPROVE]
    assert found[DETAILS]["url"] == "https://c.example.com/plans/p-a-1"
    for phase in set(Phase) - {Phase.ASKED}:
        assert buttons(shown(phase=phase)) == {}


def reasons(found):
    return [b for b in found.blocks if b["type"] == "input"]


def test_a_reason_may_be_typed_while_a_plan_is_asked_about_and_stays_through_updates():
    """Slack keeps what is typed by block and action: the same for every version of a plan, another for the next."""
    [block] = reasons(shown())
    assert (block["block_id"], block["element"]["action_id"]) == (reason_block("p-a-1"), REASON)
    assert block["optional"] is True
    assert not block.get("dispatch_action")
    assert reasons(shown("another line")) == [block]
    assert reasons(shown(plan=plan(id="p-a-2")))[0]["block_id"] != block["block_id"]
    for phase in set(Phase) - {Phase.ASKED}:
        assert reasons(shown(phase=phase)) == []


def test_a_rejection_without_a_reason_says_so():
    for why, said in (("", "no reason given"), ("too dear", "too dear")):
        found = shown(phase=Phase.REJECTED, decision=decided("Ada").with_(why=why))
        assert f"UTC: {said}" in json.dumps(list(found.blocks))


def test_a_replay_that_changes_nothing_offers_no_approval():
    assert set(buttons(shown(run="replay-1", plan=plan(run="replay-1")))) == {REJECT, DETAILS}
    assert APPROVE in buttons(shown(run="replay-1", live_replay=True))


def test_a_task_for_a_person_is_taken_on_not_applied():
    task = plan(actions=(ForPerson(action="fix_quota", instruction="Ask for quota.", commands=("gcloud x",)),))
    found = shown(plan=task)
    assert buttons(found)[APPROVE]["text"]["text"] == "Assign to me"
    assert "gcloud x" in json.dumps(list(found.blocks))


def test_a_console_address_that_is_none_makes_no_button():
    assert DETAILS not in buttons(shown(console_url="javascript:alert(1)"))


@pytest.mark.parametrize(
    ("owner", "said"),
    [
        ("slack:U0123ABCD", "<@U0123ABCD>"),
        ("slack:S0123ABCD", "<!subteam^S0123ABCD>"),
        ("slack:#llm", "#llm"),
        ("slack:!channel", "!channel"),
        ("slack:<!channel>", "&lt;!channel&gt;"),
        ("console", ""),
        ("", ""),
    ],
)
def test_only_an_id_that_services_toml_gives_is_mentioned(owner, said):
    assert owner_mention(owner) == (f" · {said}" if said else "")
    blocks = card(incident(), (), redact=str, console_url="https://c.example.com", owner=owner).blocks
    assert said in blocks[1]["text"]["text"]
    assert "<!channel>" not in json.dumps(blocks)


def test_the_title_is_a_sentence_and_a_push_message_fits_a_lock_screen():
    found = shown("the reason", plan=plan(takes_away="loses images; 36 -> 5 tokens/s"))
    assert found.blocks[0]["text"]["text"] == "gemma: the server ended; one fix fits"
    said = "Error: gemma: the server ended; one fix fits - Needs approval. Trade-off: loses images; 36 -&gt; 5 tokens/s"
    assert found.text == said
    assert len(shown("long " * 900).text) <= 240
    assert "*Needs approval* · Error: not known whether anything serves" in found.blocks[1]["text"]["text"]


def test_no_line_of_the_memory_bar_wraps_on_a_phone():
    [bars] = [b["text"]["text"] for b in shown().blocks if "before █" in json.dumps(b, ensure_ascii=False)]
    assert max(len(line) for line in bars.splitlines()) <= 32
    assert "GiB missing" in bars


def test_what_is_over_is_collapsed_and_says_how_long_it_took():
    for phase in (Phase.RESOLVED, Phase.SELF_RECOVERED, Phase.CLOSED):
        found = shown(phase=phase, phase_at=AT + timedelta(minutes=14))
        accepted(found)
        assert "after 14 min" in found.blocks[1]["text"]["text"]
        assert len(found.blocks) <= 5
        assert found.text.endswith("after 14 min.")
    assert len(shown(phase=Phase.ESCALATED).blocks) > 5
