"""A target is read strictly, and a figure that is missing never meets it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.sweep.target import FIGURES, read_target
from agent.errors import InputRejected


def test_the_documented_target_is_read_in_seconds():
    target = read_target("ttft_p99<1s, itl_p99 <= 50ms")
    assert [(b.figure, b.below, b.inclusive, b.value) for b in target.conditions] == [
        ("ttft_p99", True, False, 1.0),
        ("itl_p99", True, True, 0.05),
    ]
    assert target.text == "ttft_p99<1s,itl_p99<=50ms"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a condition is empty"),
        ("ttft_p99<1s,", "a condition is empty"),
        ("ttft_p99", "it is no figure, comparison and number"),
        ("ttft_p99<", "it is no figure, comparison and number"),
        ("ttft_p99<-1s", "it is no figure, comparison and number"),
        ("ttft_p99<1e3s", "it is no figure, comparison and number"),
        ("ttft_p99<nan", "it is no figure, comparison and number"),
        ("ttft_p99<١s", "it is no figure, comparison and number"),
        ("ttft_p99<1", "'ttft_p99' takes 'ms' or 's', not 'a number alone'"),
        ("ttft_p99<1%", "'ttft_p99' takes 'ms' or 's', not '%'"),
        ("error_share<1s", "'error_share' takes no unit or '%', not 's'"),
        ("ttft_p99>1s", "'ttft_p99' is better when lower"),
        ("output_tokens_per_s<5", "'output_tokens_per_s' is better when higher"),
        ("ttft_p99<1s,ttft_p99<2s", "it says twice what 'ttft_p99' must be"),
        ("x" * 401, "it has 401 characters, at most 400 are taken"),
    ],
)
def test_what_is_no_target_is_refused_with_the_reason(text, why):
    with pytest.raises(InputRejected) as refused:
        read_target(text)
    assert refused.value.why == why


def test_a_name_that_is_nearly_right_gets_a_hint():
    with pytest.raises(InputRejected) as refused:
        read_target("ttft_p9<1s")
    assert str(refused.value) == (
        "the target 'ttft_p9<1s' was not read: 'ttft_p9' is no figure of a sweep. Hint: did you mean 'ttft_p99'?"
    )


def test_an_absent_figure_never_meets_a_target():
    target = read_target("ttft_p99<1s,error_share<=1%")
    assert target.is_met({"ttft_p99": 0.9, "error_share": 0.01})
    assert not target.is_met({"ttft_p99": 1.0, "error_share": 0.0})
    assert not target.is_met({"ttft_p99": None, "error_share": 0.0})
    assert not target.is_met({})
    assert target.miss({"ttft_p99": 1.5, "error_share": 0.0}) == pytest.approx(0.5)
    assert [b.text for b in target.missed({"ttft_p99": 1.5, "error_share": 0.0})] == ["ttft_p99<1s"]


@given(st.text(max_size=60) | st.from_regex(r"[a-z_0-9]{3,10}[<>]=?[0-9.]{1,6}(ms|s|%)?", fullmatch=True))
def test_any_text_is_read_or_refused_and_what_was_read_reads_again_the_same(text):
    try:
        target = read_target(text)
    except InputRejected:
        return
    assert read_target(target.text) == target


@given(st.sampled_from(sorted(FIGURES)), st.floats(0.001, 1e6), st.floats(0, 1e6))
def test_better_figures_never_miss_what_worse_ones_meet(figure, bound, found):
    rate = figure == "output_tokens_per_s"
    unit = "" if rate or figure == "error_share" else "s"
    target = read_target(f"{figure}{'>' if rate else '<'}{bound:.3f}{unit}")
    better = found * 2 if rate else found / 2
    assert target.is_met({figure: better}) or not target.is_met({figure: found})
