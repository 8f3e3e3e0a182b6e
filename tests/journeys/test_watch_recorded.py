"""What the lab recorded of real vLLM: the same logs lead to the same causes, without the big install."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.app.catalogues import matcher
from agent.core.incident.phase import Phase
from tests.journeys.watched import Watched

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[0] / "data" / "host"
ROWS = {row["case"]: row for row in json.loads((DATA / "lab.json").read_text())}
IN_ITS_LOG = sorted(set(ROWS) - {"engine_hang"})  # a hang says nothing; the check notices it


@pytest.fixture
def watched(tmp_path: Path) -> Iterator:
    made = []

    def make(**environ: str):
        made.append(Watched(tmp_path, **environ))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("case", IN_ITS_LOG)
def test_a_recorded_end_is_understood(case: str) -> None:
    """The whole log of a real failure, and the class that the closed loop acted on."""
    found = matcher().classify((DATA / f"{case}.log").read_text(), whole_log=True, platform="host")
    assert (found.class_, found.signature) == (ROWS[case]["class"], ROWS[case]["signature"])


def test_a_hang_left_nothing_in_its_log() -> None:
    """Silence looks like health: that is why the watcher asks for completions."""
    found = matcher().classify((DATA / "engine_hang.log").read_text(), whole_log=True, platform="host")
    assert found.class_ in {"benign", "unknown"}


def test_every_case_of_the_lab_recovered() -> None:
    """What is on record are recoveries that were verified by a real completion, or by what a person did."""
    assert {row["ended"] for row in ROWS.values()} == {"RESOLVED"}
    assert set(ROWS) >= {"kv_cache_insufficient", "invalid_flag", "unsupported_dtype", "port_in_use", "engine_hang"}


def test_the_recorded_failure_is_mended_in_the_loop(watched) -> None:
    """The lines of real vLLM, printed by a program that starts in no time: lowered to what vLLM itself said."""
    own = watched(FAKE_KV_LOG=str(DATA / "kv_cache_insufficient.log"))
    own.watch(
        "--max-model-len", "131072", "--enforce-eager"
    )  # as in the recorded start: else its figures prove nothing
    asked = own.until(own.asked, "a plan")
    assert asked.cause == "kv_cache_insufficient"
    assert [(a.name, a.value) for a in asked.plan.actions] == [("max-model-len", "32640")]
    own.approve(asked.plan.id)
    assert own.until(own.ended, "an end").phase is Phase.RESOLVED
