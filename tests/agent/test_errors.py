"""Every error says what, why and how to mend it."""

import pytest

from agent import errors


def classes() -> list[type[errors.SreError]]:
    found, new = [], [errors.SreError]
    while new:
        one = new.pop()
        found.append(one)
        new += one.__subclasses__()
    return [kind for kind in found if kind.__module__ == "agent.errors"]


@pytest.mark.parametrize("kind", classes(), ids=lambda c: c.__name__)
def test_an_error_cannot_be_built_without_its_three_parts(kind: type[errors.SreError]) -> None:
    """What alone is not enough."""
    with pytest.raises(TypeError):
        kind("plan 'p7' was not applied")  # type: ignore[call-arg]


def test_a_full_message_reads_as_sentences() -> None:
    """One full message, pinned."""
    error = errors.PolicyRefused(
        "plan 'p7' was not applied",
        why="the approval covers digest '3fa1', the plan is now '9c20'",
        hint="look at the new plan and approve it: sre-agent approve p7",
    )
    assert str(error) == (
        "plan 'p7' was not applied: the approval covers digest '3fa1', the plan is now '9c20'. "
        "Hint: look at the new plan and approve it: sre-agent approve p7"
    )


@pytest.mark.parametrize(
    ("kind", "redeliver", "exit_code"),
    [
        (errors.InputRejected, False, 2),
        (errors.SettingsRejected, False, 2),
        (errors.StateConflict, True, 2),
        (errors.PolicyRefused, False, 2),
        (errors.CredentialsRefused, False, 2),
        (errors.DependencyFailed, True, 3),
        (errors.ModelMisbehaved, False, 3),
    ],
    ids=lambda v: getattr(v, "__name__", str(v)),
)
def test_an_error_knows_whether_another_delivery_can_help(
    kind: type[errors.SreError], redeliver: bool, exit_code: int
) -> None:
    """Sender and policy errors never come again by themselves; rivals and dependencies do."""
    assert (kind.redeliver, kind.exit_code) == (redeliver, exit_code)
