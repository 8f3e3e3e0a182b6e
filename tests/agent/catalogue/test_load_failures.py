"""The failure catalogue: whole and valid, and every mistake told at once."""

import shutil
from pathlib import Path

import pytest

from agent.catalogue import load_failures as module
from agent.catalogue.load_failures import is_fix_action, load_failures
from agent.errors import SettingsRejected
from agent.failures.signature import FailureClass, Role


def test_every_class_can_be_recognised() -> None:
    catalogue = load_failures()
    reached = {s.failure_class for s in catalogue.signatures if s.role in {Role.CAUSE, Role.CONSEQUENCE, Role.BENIGN}}
    reached |= {class_ for s in catalogue.signatures for class_ in s.class_by_phase.values()}
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
precedence = 300
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
        "unknown key 'colour'", "title is missing", "source is missing", "'gremlins' is no class", "'ab' has no literal",
        "'fine phrase' stands twice", "'pray' is no fix action", "no field 'nope'", "precedence is 300",
        "'moon' is no platform", "id wants", "date is 'yesterday'", "yy.toml",
    ):  # fmt: skip
        assert part in text, part


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
