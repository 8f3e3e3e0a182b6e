"""Every error of the client is one of ours at the edge."""

import inspect

import grpc
import pytest
from google.api_core import exceptions as api
from google.auth import exceptions as auth

from agent.adapters.store.firestore.documents import Documents
from agent.adapters.store.firestore.errors import Rival, client_errors, translated, translating
from agent.entrypoints.pubsub.settle import is_busy
from agent.errors import DependencyFailed, InputRejected, SreError


def made(class_: type[BaseException]) -> BaseException:
    """One error of a class, however it wants to be built."""
    for arguments in (("went wrong",), ("went wrong", None), ()):
        try:
            return class_(*arguments)
        except TypeError:
            continue
    raise AssertionError(class_)


def classes(module) -> list[type[BaseException]]:
    found = [c for _, c in inspect.getmembers(module, inspect.isclass) if issubclass(c, Exception)]
    return [c for c in found if not issubclass(c, Warning) and c.__module__.startswith("google")]


UNUSED = {"AsyncRestUnsupportedParameterError"}  # of a transport that we do not use; says so before any call
FOREIGN = [*(c for c in classes(api) if c.__name__ not in UNUSED), *classes(auth), grpc.RpcError]


@pytest.mark.parametrize("class_", FOREIGN, ids=lambda c: f"{c.__module__}.{c.__name__}")
def test_no_error_of_the_client_escapes(class_: type[BaseException]) -> None:
    """Each is ours, says what, why and how to mend, and only a bad value is never tried again."""
    assert issubclass(class_, client_errors()), "a new family of errors"
    with pytest.raises(SreError) as caught, translating("p/(default)"):
        raise made(class_)
    error = caught.value
    assert isinstance(error, DependencyFailed | InputRejected)
    assert error.what
    assert class_.__name__ in error.why
    assert error.hint
    assert isinstance(error, InputRejected) == issubclass(class_, api.InvalidArgument | api.OutOfRange)


@pytest.mark.parametrize(
    "class_", [api.DeadlineExceeded, api.ResourceExhausted, api.ServiceUnavailable, api.TooManyRequests]
)
def test_a_late_answer_says_nothing_about_the_message(class_: type[Exception]) -> None:
    assert is_busy(translated(class_("later"), "p"))


def test_what_a_person_must_do_is_said() -> None:
    assert "role" in translated(api.PermissionDenied("no"), "p").hint
    assert "indexes" in translated(api.FailedPrecondition("The query requires an index"), "p").hint


class Client:
    """A client whose batches fail."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def document(self, path: str) -> str:
        return path

    def batch(self) -> "Client":
        return self

    def create(self, *_: object) -> None:
        pass

    def commit(self, **_: object) -> None:
        raise self.error


@pytest.mark.parametrize("class_", [api.AlreadyExists, api.Aborted, api.FailedPrecondition, api.NotFound])
def test_a_precondition_that_does_not_hold_is_a_rival(class_: type[Exception]) -> None:
    documents = Documents("p", client=Client(class_("x")))
    assert not documents.create("a/b", {})


def test_a_rival_never_leaves_the_adapter_as_it_is() -> None:
    """It is no error of the service: whoever writes catches it and says who was first."""
    assert not issubclass(Rival, SreError)
