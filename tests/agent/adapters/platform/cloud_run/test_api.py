"""Everything Google's client can raise becomes one of our errors, with what to do."""

import inspect

import grpc
import pytest
from google.api_core import exceptions as api
from google.auth import exceptions as auth

from agent.adapters.platform.cloud_run.api import translated
from agent.adapters.platform.google_errors import table
from agent.errors import CredentialsRefused, DependencyFailed, InputRejected, PolicyRefused, SreError, StateConflict

CATCH_ALL = {api.GoogleAPIError, api.GoogleAPICallError, api.ClientError}


def classes() -> list[type[Exception]]:
    return [
        c
        for module in (api, auth)
        for _, c in inspect.getmembers(module, inspect.isclass)
        if issubclass(c, Exception) and c.__module__ == module.__name__
    ]


def made(kind: type[Exception], says: str = "no") -> Exception:
    try:
        return kind(says)
    except TypeError:
        return kind(says, None)


@pytest.mark.parametrize("kind", classes(), ids=lambda c: c.__name__)
def test_no_class_is_unmapped(kind: type[Exception]) -> None:
    """Each class has an entry narrower than the catch-alls, or is one of them; none comes through raw."""
    nearest = next((base for base in kind.__mro__ if base in table()), None)
    assert nearest is not None
    assert nearest not in CATCH_ALL or kind in CATCH_ALL
    error = translated(made(kind), "it was not done")
    assert isinstance(error, SreError)
    assert error.why
    assert error.hint


RTX = (
    "spec.template: Max instances must be set to 1 or fewer in order to set GPU requirements.\n\nQuota violated:\n"
    "NvidiaRtxPro6000GpuAllocNoZonalRedundancyPerProjectRegion requested: 3 allowed: 1"
)
CASES = {
    "quota in an invalid argument": (api.InvalidArgument(RTX), PolicyRefused, "quota"),
    "quota in a precondition": (
        api.FailedPrecondition("Quota exceeded for total allowable count of GPUs per project per region."),
        PolicyRefused,
        "quota",
    ),
    "quota of the API's rate": (
        api.ResourceExhausted("Quota exceeded for quota metric 'Read requests' and limit 'Read requests per minute'"),
        DependencyFailed,
        "tried again",
    ),
    "permission": (
        api.PermissionDenied("Permission 'run.services.update' denied"),
        PolicyRefused,
        "run.services.update",
    ),
    "no credentials": (auth.DefaultCredentialsError("none"), CredentialsRefused, "identity"),
    "the token service is away": (auth.TransportError("timeout"), DependencyFailed, "tried again"),
    "validation": (api.InvalidArgument("template.containers[0].resources: bad"), InputRejected, "another plan"),
    "conflict": (api.Aborted("Conflict for resource 'gemma': version '1' was specified"), StateConflict, "plan again"),
    "conflict told as precondition": (api.FailedPrecondition("etag mismatch"), StateConflict, "plan again"),
    "exists": (api.AlreadyExists("Revision named 'x' exists"), StateConflict, "plan again"),
    "missing": (api.NotFound("Resource 'gemma' was not found"), InputRejected, "services.toml"),
    "unavailable": (api.ServiceUnavailable("later"), DependencyFailed, "tried again"),
    "deadline": (api.DeadlineExceeded("slow"), DependencyFailed, "tried again"),
    "retries used up": (api.RetryError("gave up", api.ServiceUnavailable("later")), DependencyFailed, "tried again"),
    "raw gRPC": (grpc.RpcError("reset"), DependencyFailed, "tried again"),
    "a strange one": (OSError("socket"), DependencyFailed, "tried again"),
}


@pytest.mark.parametrize(("error", "kind", "hint"), CASES.values(), ids=CASES)
def test_who_must_act_is_told_with_what_to_do(error: Exception, kind: type[SreError], hint: str) -> None:
    """Quota and permission go to a person, conflicts to the planner, weather to the next try."""
    ours = translated(error, "service 'gemma' was not changed")
    assert type(ours) is kind
    assert hint in ours.hint
    assert ours.what == "service 'gemma' was not changed"


def test_our_own_errors_pass() -> None:
    """What was translated once is not translated again."""
    ours = InputRejected("a", why="b", hint="c")
    assert translated(ours, "x") is ours
