"""The failure catalogue: whole and valid, and every mistake told at once."""

import json
import shutil
from pathlib import Path

import pytest

from agent.catalogue import load_failures as module
from agent.catalogue.load_failures import is_fix_action, load_failures
from agent.core.change.startup_figures import PREDICTED_AS
from agent.errors import SettingsRejected
from agent.failures.measure import measure
from agent.failures.signature import FailureClass, Role


def test_every_class_can_be_recognised() -> None:
    catalogue = load_failures()
    reached = {s.failure_class for s in catalogue.signatures if s.role in {Role.CAUSE, Role.CONSEQUENCE, Role.BENIGN}}
    reached |= {class_ for s in catalogue.signatures for class_ in (*s.class_by_phase.values(), *s.becomes)}
    assert reached == set(FailureClass) - {FailureClass.UNKNOWN}


def test_every_entry_carries_a_source_a_date_and_a_remedy() -> None:
    for signature in load_failures().signatures:
        assert signature.source
        assert signature.date
        assert signature.role is Role.PHASE or signature.fixes


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    for path in module.FOLDER.glob("*.toml"):
        shutil.copy(path, tmp_path)
    (tmp_path / "zz.toml").write_text(
        """
[[signature]]
id = "Bad Id"
class = "gremlins"
phrases = ["ab", "fine phrase", "fine phrase"]
fixes = ["pray"]
fields = ["nope"]
rank = "highest"
platforms = ["moon"]
colour = "red"
[[signature]]
id = "oom_killed"
class = "host_oom"
phrases = ["something else"]
title = "twice"
source = "s"
date = "yesterday"
"""
    )
    (tmp_path / "yy.toml").write_text("not = [toml")
    with pytest.raises(SettingsRejected) as caught:
        load_failures(tmp_path)
    text = str(caught.value)
    for part in (
        "unknown key 'colour'", "title is missing", "source is missing", "class is 'gremlins'", "'ab' has no literal",
        "'fine phrase' stands twice", "'pray' is no fix action", "no field 'nope'", "'highest' is no rank of its role",
        "'moon' is no platform", "id is '", "date is 'yesterday'", "yy.toml",
    ):  # fmt: skip
        assert part in text, part


def test_every_rank_has_a_reason_and_is_used_and_every_role_has_one_default() -> None:
    """No number of precedence without a reason: entries name a rank, and the ranks are few."""
    catalogue = load_failures()
    ranks = catalogue.ranks
    used = {(signature.role, signature.precedence) for signature in catalogue.signatures}
    assert all(rank.why for rank in ranks.values())
    assert used == {(role, rank.precedence) for rank in ranks.values() for role in rank.roles}
    for role in Role:
        assert sum(rank.default and role in rank.roles for rank in ranks.values()) == 1


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        (("precedence = 92", "precedence = 920"), "precedence is 920"),
        (('roles = ["cause"]', 'roles = ["gremlin"]'), "roles.0 is 'gremlin'"),
        (("why =", "because ="), "why is missing"),
    ],
)
def test_a_rank_without_number_role_or_reason_is_refused(tmp_path: Path, change: tuple[str, str], mistake: str) -> None:
    for path in module.FOLDER.glob("*.toml"):
        shutil.copy(path, tmp_path)
    ranks = tmp_path / "ranks.toml"
    ranks.write_text(ranks.read_text().replace(*change, 1))
    with pytest.raises(SettingsRejected) as caught:
        load_failures(tmp_path)
    assert mistake in str(caught.value)


LINES = {
    "weights_gib": ("(EngineCore pid=372) INFO [gpu_model_runner.py:5150] Model loading took 15.62 GiB memory and 664.5 seconds", 15.62),
    "available_kv_gib": ("(EngineCore pid=214) INFO [gpu_worker.py:420] Available KV cache memory: 66.26 GiB", 66.26),
    "kv_tokens": ("(EngineCore pid=214) INFO [kv_cache_utils.py:1620] GPU KV cache size: 1,050,170 tokens", 1_050_170),
    "max_concurrency": ("INFO [kv_cache_utils.py:1625] Maximum concurrency for 32,640 tokens per request: 1.00x", 1.0),
    "cuda_graph_gib": ("INFO [gpu_model_runner.py:5400] Graph capturing finished in 9 secs, took 0.06 GiB", 0.06),
    "num_gpu_blocks": ("INFO 02-11 [executor_base.py:110] # cuda blocks: 7097, # CPU blocks: 512", 7097),
    "peak_activation_gib": ("PyTorch activation peak memory takes 1.23GiB; the rest of the memory", 1.23),
    "vllm": ("INFO [core.py:109] Initializing a V1 LLM engine (v0.23.1rc1.dev667+g9969466a5) with config: model='m'", "0.23.1rc1.dev667"),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_every_figure_that_is_read_back_is_found_in_its_line(name: str) -> None:
    """And in no other line of a start."""
    printed = load_failures().printed
    line, value = LINES[name]
    assert measure({name: printed[name]}, ["noise", line], 0).values == {name: value}
    others = [text for other, (text, _) in LINES.items() if other != name]
    assert measure({name: printed[name]}, others, 0).values == {}


def test_the_figures_that_are_read_back_are_those_that_are_compared() -> None:
    """One without the other would be read for nothing, or compared with nothing."""
    assert set(LINES) == set(load_failures().printed) == set(PREDICTED_AS) - {"decode_tokens_per_s"} | {"vllm"}


def test_an_id_stands_once(tmp_path: Path) -> None:
    for path in module.FOLDER.glob("*.toml"):
        shutil.copy(path, tmp_path)
    shutil.copy(tmp_path / "tpu.toml", tmp_path / "zz_again.toml")
    with pytest.raises(SettingsRejected, match=r"zz_again\.toml tpu_hbm_oom: id stands twice"):
        load_failures(tmp_path)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("set_flag max_model_len lower", True),
        ("set_flag max_model_len 32640", True),
        ("set_flag chat_template", True),
        ("set_env VLLM_USE_V1", True),
        ("restart", True),
        ("set_flag", False),
        ("set_flag Max lower", False),
        ("set_flag a b c", False),
        ("rm -rf", False),
        ("restart\n", False),
    ],
)
def test_the_vocabulary_of_fix_actions_is_closed(text: str, right: bool) -> None:
    assert is_fix_action(text) is right


LEARNED = Path(__file__).parents[2] / "data" / "learned_texts.jsonl"


def test_what_was_learned_from_others_is_listed_by_address_and_label_and_kept_in_the_catalogue() -> None:
    """No text of others stands here; where each came from, what it is, and which entry knows it now."""
    catalogue = load_failures()
    ids = {signature.id for signature in catalogue.signatures}
    rows = [json.loads(line) for line in LEARNED.read_text(encoding="utf-8").splitlines()]
    assert len({row["source_url"] for row in rows}) == len(rows) > 150
    for row in rows:
        assert set(row["classes"]) <= {*map(str, FailureClass)}, row["source_url"]
        assert all(is_fix_action(fix) for fix in row["fixes"]), row["source_url"]
        assert row["learned"] is None or row["learned"] in {*ids, "healthy_progress"}, row["source_url"]
        assert "log" not in row


def test_every_entry_says_in_a_sentence_what_it_is() -> None:
    """A title names the finding; what it means to an operator stands beside it."""
    wordless = [
        one.id for one in load_failures().signatures if not one.what.endswith((".", ". ")) or len(one.what) < 20
    ]
    assert wordless == []
