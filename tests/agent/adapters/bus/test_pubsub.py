"""Every error of Google's client becomes one of ours, and one that sends the message again unless it never can."""

import inspect

import pytest
from google.api_core import exceptions as api
from google.auth import exceptions as auth

from agent.adapters.bus.pubsub import PubSubBus, translated
from agent.entrypoints.pubsub.settle import is_busy
from agent.errors import DependencyFailed, InputRejected


def every_error():
    found = {
        f"{module.__name__}.{name}": kind
        for module in (api, auth)
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and issubclass(kind, Exception) and kind.__module__ == module.__name__
    }
    return sorted(found.items())


def raised(kind):
    try:
        return kind("no")
    except TypeError:
        return kind("no", "cause")


class Failing:
    def __init__(self, error):
        self._error = error

    def publish(self, **_):
        raise self._error


@pytest.mark.parametrize("kind", [kind for _, kind in every_error()], ids=[name for name, _ in every_error()])
def test_no_foreign_error_comes_through(kind, make):
    bus = PubSubBus("p", client=Failing(raised(kind)), deadline_s=0)
    with pytest.raises((DependencyFailed, InputRejected)) as refused:
        bus.publish(make.message("m1"))
    assert isinstance(refused.value, InputRejected) == issubclass(kind, api.InvalidArgument)
    assert "'m1'" in str(refused.value)


def test_a_missing_permission_says_what_to_give(make):
    assert "roles/pubsub.publisher" in translated(api.PermissionDenied("no"), make.message()).hint
    assert "topics" in translated(api.NotFound("no"), make.message()).hint


def test_a_deadline_is_told_from_a_failure(make):
    """A time-out says nothing about the message, so that it is not counted against it."""
    for kind, busy in ((api.DeadlineExceeded, True), (api.TooManyRequests, True), (api.PermissionDenied, False)):
        with pytest.raises(DependencyFailed) as failed:
            PubSubBus("p", client=Failing(kind("no")), deadline_s=0).publish(make.message())
        assert is_busy(failed.value) is busy


def test_attributes_over_the_limits_are_refused_before_they_are_sent(make):
    bus = PubSubBus("p", client=Failing(AssertionError("it was sent")))
    for attributes in ({"k": "x" * 1025}, {"k" * 257: "x"}, {f"k{n}": "x" for n in range(100)}):
        with pytest.raises(InputRejected, match="was not published"):
            bus.publish(make.message(attributes=attributes))


class Recovering:
    """Fails so often, then takes what it is given."""

    def __init__(self, *errors):
        self._errors = list(errors)
        self.calls = 0

    def publish(self, **_):
        self.calls += 1
        if self._errors:
            raise self._errors.pop(0)
        return "17"


def test_what_passes_is_tried_again_within_the_deadline(make):
    client = Recovering(api.ServiceUnavailable("a moment"), api.ResourceExhausted("slowly"))
    assert PubSubBus("p", client=client).publish(make.message()) == "17"
    assert client.calls == 3


def test_what_does_not_pass_is_tried_once(make):
    client = Recovering(api.PermissionDenied("no"))
    with pytest.raises(DependencyFailed):
        PubSubBus("p", client=client).publish(make.message())
    assert client.calls == 1


def test_a_deadline_that_is_over_ends_the_repetitions(make):
    client = Recovering(*[api.ServiceUnavailable("down")] * 99)
    with pytest.raises(DependencyFailed, match="it is sent again"):
        PubSubBus("p", client=client, deadline_s=0.25).publish(make.message())
    assert 1 < client.calls < 10
