"""How far each start of each server had come."""

import pytest

from agent.failures.signature import Phase, Proof
from agent.failures.text.phases import BANNER_LINES, LOOK_BACK_LINES, Timeline
from agent.failures.text.starts import PhaseMark

LINES = 400
BANNER = (Phase.CONFIG, Proof.NEW_START)
COMPLETE = (Phase.READY, Proof.STARTUP_COMPLETE)
TOKENS = (Phase.SERVING, Proof.TOKENS)
HEALTH = (Phase.SERVING, Proof.ANSWERS)


def timeline(*marks: tuple[int, Phase, bool]) -> Timeline:
    return Timeline([PhaseMark(index=i, phase=phase, near=near) for i, phase, near in marks], [""] * LINES)


def proofs(*marks: tuple[int, tuple[Phase, Proof]], lines: dict[int, str] | None = None, troubled=()) -> Timeline:
    text = [(lines or {}).get(index, "") for index in range(LINES)]
    return Timeline([PhaseMark(index=i, phase=p, near=False, proof=q) for i, (p, q) in marks], text, troubled)


def test_the_traceback_decides_before_the_marker_above() -> None:
    marks = timeline((0, Phase.READY, False), (8, Phase.LOADING, True))
    assert marks.phase_at(10) is Phase.LOADING
    assert marks.phase_at(10 + LOOK_BACK_LINES) is Phase.SERVING


def test_frames_below_the_error_count_where_none_stand_above() -> None:
    assert timeline((12, Phase.PROFILING, True)).phase_at(10) is Phase.PROFILING


def test_without_any_mark_the_phase_is_unknown() -> None:
    assert timeline().phase_at(3) is Phase.UNKNOWN
    assert timeline().last_phase is Phase.UNKNOWN
    assert not timeline().is_progress


def test_the_end_of_a_start_proves_that_its_troubles_are_over_and_those_of_no_other() -> None:
    failed = proofs((0, BANNER), (9, (Phase.LOADING, Proof.NONE)), (20, BANNER), (30, COMPLETE))
    assert not failed.started_after(12)
    assert failed.started_after(22)
    assert not failed.started_after(31)


def test_the_lines_of_one_banner_are_one_start() -> None:
    one = proofs((0, BANNER), (2, BANNER), (4, BANNER), (30, COMPLETE))
    assert one.started_after(1)
    assert not proofs((0, BANNER), (4, BANNER), (30, COMPLETE), troubled=(2,)).started_after(2)
    far = proofs((0, BANNER), (BANNER_LINES + 1, BANNER), (30, COMPLETE))
    assert not far.started_after(1)


def test_an_engine_that_begins_again_after_it_was_up_is_another_start() -> None:
    again = proofs((0, COMPLETE), (9, (Phase.CONFIG, Proof.NONE)), (20, COMPLETE))
    assert not again.started_after(5)
    assert again.started_after(12)


@pytest.mark.parametrize("proof", [Proof.NONE, Proof.ANSWERS])
def test_answers_prove_nothing(proof: Proof) -> None:
    marks = proofs((5, (Phase.SERVING, proof)))
    assert not marks.started_after(2)
    assert not marks.served_after(2)


def test_tokens_prove_that_it_serves_and_not_that_a_start_was_overcome() -> None:
    assert proofs((5, TOKENS)).served_after(2)
    assert not proofs((5, TOKENS)).started_after(2)
    assert not proofs((5, TOKENS), (9, BANNER)).served_after(12)


DP = "(EngineCore_DP{} pid=7{}) ERROR 05-06 07:08:09 [core.py:7] lamp"
COUNTED = "(APIServer pid=7) INFO 05-06 07:08:09 [loggers.py:257] Engine {:03d}: lamp"


@pytest.mark.parametrize(
    ("error", "marks", "served", "progress"),
    [
        (DP.format(0, 0), {5: COUNTED.format(1)}, False, False),
        (DP.format(1, 1), {5: COUNTED.format(1)}, True, True),
        ("(EngineCore pid=7) lamp", {5: COUNTED.format(0)}, True, True),
        ("(EngineCore pid=7) lamp", {5: COUNTED.format(1)}, False, False),
        ("lamp", {5: COUNTED.format(1)}, False, False),
        ("lamp", {5: COUNTED.format(1), 6: COUNTED.format(0)}, True, True),
        ("lamp", {1: COUNTED.format(1), 5: COUNTED.format(0)}, False, False),
        (DP.format(0, 0), {5: "(APIServer pid=7) answered"}, False, True),
        ("lamp", {5: "(APIServer pid=7) answered"}, True, True),
    ],
)
def test_tokens_of_another_engine_prove_nothing_of_this_one(
    error: str, marks: dict[int, str], served: bool, progress: bool
) -> None:
    """A completed request does not say which of several engines answered it."""
    told = proofs(*((at, TOKENS) for at in marks), lines={2: error, **marks})
    assert (told.served_after(2), told.progress_after(2)) == (served, progress)


def test_another_server_proves_nothing_of_this_one() -> None:
    lines = {2: "web-1 | ERROR", 5: "web-2 | up", 6: "web-2 | tokens"}
    marks = proofs((5, COMPLETE), (6, TOKENS), lines=lines)
    assert not marks.started_after(2)
    assert not marks.served_after(2)
    assert marks.phase_at(2) is Phase.UNKNOWN
    assert proofs((5, COMPLETE), lines={2: "web-1 | ERROR", 5: "web-1 | up"}).started_after(2)


def test_two_pids_of_one_api_server_are_two_starts() -> None:
    lines = {0: "(APIServer pid=7) a", 2: "(APIServer pid=8) b", 4: "(APIServer pid=8) c", 5: "(APIServer pid=7) d"}
    lines |= {9: "(APIServer pid=8) complete"}
    marks = proofs((0, BANNER), (2, BANNER), (9, COMPLETE), lines=lines)
    assert marks.started_after(4)
    assert not marks.started_after(5)


def test_where_starts_share_a_stream_all_must_complete_for_a_line_that_does_not_say_whose_it_is() -> None:
    lines = {0: "(APIServer pid=7)", 2: "(APIServer pid=8)", 9: "(APIServer pid=8)", 12: "(APIServer pid=7)"}
    one = [(0, BANNER), (2, BANNER), (9, COMPLETE)]
    assert not proofs(*one, (12, (Phase.LOADING, Proof.NONE)), lines=lines).started_after(5)
    assert proofs(*one, (12, COMPLETE), lines=lines).started_after(5)


def test_a_marker_just_below_serves_where_none_or_a_banner_stands_above() -> None:
    assert timeline((12, Phase.LOADING, False)).phase_at(10) is Phase.LOADING
    assert timeline((12, Phase.READY, False)).phase_at(10) is Phase.SERVING
    assert timeline((90, Phase.LOADING, False)).phase_at(10) is Phase.UNKNOWN
    assert timeline((1, Phase.CONFIG, False), (12, Phase.LOADING, False)).phase_at(10) is Phase.LOADING
    assert timeline((1, Phase.PROFILING, False), (12, Phase.READY, False)).phase_at(10) is Phase.PROFILING


def test_a_health_line_tells_the_phase_of_what_follows_and_of_nothing_above() -> None:
    assert proofs((12, HEALTH)).phase_at(10) is Phase.UNKNOWN
    assert proofs((12, HEALTH)).phase_at(14) is Phase.SERVING


def test_an_event_of_the_platform_takes_the_phase_of_the_one_server_there_is() -> None:
    marks = proofs((3, (Phase.LOADING, Proof.NONE)), lines={3: "web-1 | loading"})
    assert marks.marker_at(9) is Phase.LOADING
    assert marks.marker_at(2) is Phase.UNKNOWN


def test_a_banner_alone_says_that_a_server_began_and_an_engine_says_more() -> None:
    assert proofs((0, BANNER), (2, BANNER)).only_begun(5)
    assert not proofs((0, BANNER), (2, (Phase.CONFIG, Proof.NONE))).only_begun(5)
    assert proofs((0, BANNER), (9, (Phase.LOADING, Proof.NONE))).only_begun(5)
