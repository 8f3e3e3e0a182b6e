"""Drift in words that a person acts on."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.core.change.config_drift import ConfigChange, Drift, ServiceRecord
from agent.core.plan.action import Difference
from agent.presentation.drift_text import as_declared, change_line, changes_before, drift_line

NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)


def drift(path: str, wanted: str | None, live: str | None) -> Drift:
    return Drift(path=path, wanted=wanted, live=live, against="declared")


def change(path: str, before: str | None, after: str | None, *, minutes: float = 40, by: str = "ada@example.com"):
    rows = (Difference(path=path, before=before, after=after),)
    return ConfigChange(at=NOW - timedelta(minutes=minutes), by=by, rows=rows)


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (
            change("flag --max-num-seqs", "8", "32"),
            "--max-num-seqs was raised from 8 to 32 by ada@example.com 40 minutes before",
        ),
        (
            change("max_instances", "4", "2", by="", minutes=1),
            "the most instances was lowered from 4 to 2 by somebody unknown 1 minute before",
        ),
        (
            change("flag --enforce-eager", None, "", minutes=600),
            "--enforce-eager was turned on by ada@example.com 10 hours before",
        ),
        (
            change("env HF_HUB_OFFLINE", "1", None).with_(ours=True),
            "HF_HUB_OFFLINE was removed (it was 1) by an approved change of the agent 40 minutes before",
        ),
    ],
    ids=["raised", "lowered", "turned on", "ours"],
)
def test_a_change_is_one_line(made: ConfigChange, line: str) -> None:
    assert change_line(made, before=NOW) == line


def test_only_the_day_before_is_told_newest_first() -> None:
    """What came after the trouble, or long before, did not lead to it."""
    kept = tuple(
        change("flag --max-num-seqs", "8", str(n), minutes=m)
        for n, m in [(9, 2000), (10, 300), (11, 200), (12, 100), (13, 5), (14, -1)]
    )
    record = ServiceRecord(service="gemma", state={}, changes=kept, seen_at=NOW)
    lines = changes_before(record, NOW)
    assert [line.split(" to ")[1].split()[0] for line in lines] == ["13", "12", "11"]
    assert changes_before(None, NOW) == ()


def test_the_way_back_is_one_request_and_what_only_a_person_can_do() -> None:
    """The command is quoted for a shell; an image has no option of its own."""
    rows = (
        drift("flag --limit-mm-per-prompt", '{"image": 0}', None),
        drift("flag --enforce-eager", None, ""),
        drift("min_instances", "0", "1"),
        drift("max_instances", "2", "4"),
        drift("image", "vllm:v1", "vllm:nightly"),
    )
    command, by_hand = as_declared("gemma", rows, {})
    assert command == (
        "sre-agent change gemma --set-flag 'limit-mm-per-prompt={\"image\": 0}' --unset-flag enforce-eager"
        " --scale 0:2 --why 'as declared'"
    )
    assert by_hand == "by hand: image to vllm:v1"
    assert drift_line(rows[1]) == "--enforce-eager is on, declared is nothing"
    assert drift_line(rows[4]) == "image is vllm:nightly, declared is vllm:v1"


def test_a_request_names_both_ends_of_the_scaling() -> None:
    """The end that is as it should be is taken from what runs."""
    said = as_declared("gemma", (drift("max_instances", "2", "4"),), {"min_instances": "1", "max_instances": "4"})
    assert said == ("sre-agent change gemma --scale 1:2 --why 'as declared'",)


def test_a_secret_is_not_put_into_the_command() -> None:
    """Only what stands in its place is known; whoever pasted that into a shell would overwrite the secret."""
    said = as_declared("gemma", (drift("env HF_TOKEN", "[redacted:hugging-face]", "[redacted:token]"),), {})
    assert said == ("by hand: HF_TOKEN to [redacted:hugging-face]",)
