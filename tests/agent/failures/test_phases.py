"""How far a server had come."""

from agent.failures.phases import LOOK_BACK_LINES, Mark, Timeline
from agent.failures.signature import Phase


def timeline(*marks: tuple[int, Phase, bool]) -> Timeline:
    return Timeline([Mark(index=i, phase=phase, near=near) for i, phase, near in marks])


def test_the_traceback_decides_before_the_marker_above() -> None:
    marks = timeline((0, Phase.READY, False), (8, Phase.LOADING, True))
    assert marks.phase_at(10) is Phase.LOADING
    assert marks.phase_at(10 + LOOK_BACK_LINES) is Phase.SERVING


def test_frames_below_the_error_count_where_none_stand_above() -> None:
    assert timeline((12, Phase.PROFILING, True)).phase_at(10) is Phase.PROFILING


def test_without_any_mark_the_phase_is_unknown() -> None:
    assert timeline().phase_at(3) is Phase.UNKNOWN
    assert not timeline().ended_up


def test_a_new_start_after_the_error_does_not_prove_that_it_was_overcome() -> None:
    failed = timeline((0, Phase.CONFIG, False), (9, Phase.CONFIG, False), (20, Phase.READY, False))
    assert not failed.came_up_after(5)
    assert failed.came_up_after(12)


def test_tokens_after_an_error_without_marker_prove_nothing() -> None:
    assert not timeline((5, Phase.SERVING, False)).came_up_after(2)
    assert timeline((5, Phase.READY, False)).came_up_after(2)


def test_a_server_that_was_up_and_then_stopped_by_order_ended_well() -> None:
    assert timeline((1, Phase.READY, False), (2, Phase.STOPPING, False)).ended_up
    assert not timeline((1, Phase.LOADING, False), (2, Phase.STOPPING, False)).ended_up


def test_a_marker_just_below_serves_where_none_stands_above() -> None:
    assert timeline((12, Phase.LOADING, False)).phase_at(10) is Phase.LOADING
    assert timeline((12, Phase.READY, False)).phase_at(10) is Phase.SERVING
    assert timeline((90, Phase.LOADING, False)).phase_at(10) is Phase.UNKNOWN
