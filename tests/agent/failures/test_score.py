"""Scoring: what counts as right, and how sure a share is."""

import pytest

from agent.failures.score import EvalAnswer, Share, changes, label_of, report, same_fix


def answer(id_: str, class_: str, fix: str, *, certain: bool = False) -> EvalAnswer:
    return EvalAnswer(id=id_, class_=class_, signature=None, confidence=0.5, certain=certain, fix=fix)


def test_the_wilson_interval_of_a_textbook_case() -> None:
    low, high = Share(right=8, total=10).interval or (0, 0)
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)
    assert Share(right=0, total=0).interval is None


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("restart", "restart", True),
        ("set_flag tensor_parallel_size up", "set_flag tensor_parallel_size", True),
        ("set_flag gpu_memory_utilization up", "set_flag gpu_memory_utilization lower", False),
        ("set_env A", "set_env B", False),
        ("", "restart", False),
    ],
)
def test_a_flag_without_direction_agrees_with_either(a: str, b: str, same: bool) -> None:
    assert same_fix(a, b) is same


def test_also_acceptable_counts_as_right_and_the_core_is_told_apart() -> None:
    labels = [
        label_of(
            {
                "class": "host_oom",
                "also_acceptable_class": ["engine_dead"],
                "fix_action": "restart",
                "also_acceptable": [],
            },
            "a",
        ),
        label_of({"class": "benign", "fix_action": "none_benign", "confidence": "low"}, "b"),
    ]
    result = report(
        labels, [answer("a", "engine_dead", "restart", certain=True), answer("b", "disk_full", "increase_disk")]
    )
    assert result["all"]["class"]["right"] == 1
    assert result["core"]["class"] == {"right": 1, "total": 1, "share": 1.0, "interval_95": [0.2065, 1.0]}
    assert result["benign_false_alarms"] == ["b"]
    assert result["confusions"] == [{"class": "benign", "answer": "disk_full", "records": 1}]


def test_a_diff_names_what_changed_only() -> None:
    labels = [label_of({"class": "host_oom", "fix_action": "restart"}, name) for name in "ab"]
    before = report(labels, [answer("a", "host_oom", "restart"), answer("b", "unknown", "")])
    now = report(labels, [answer("a", "host_oom", "restart"), answer("b", "host_oom", "restart")])
    assert [row["id"] for row in changes(before, now)] == ["b"]
    assert changes(now, now) == []
