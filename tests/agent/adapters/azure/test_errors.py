"""Everything that Azure's client can raise becomes one of our errors, with what to do."""

import inspect

import azure.core.exceptions as core
import azure.identity
import pytest

from agent.adapters.azure.errors import translated
from agent.errors import CredentialsRefused, DependencyFailed, InputRejected, PolicyRefused, SreError, StateConflict
from agent.ports.platform import NotDeployed


class Answer:
    """As much of a response as the library reads."""

    def __init__(self, status, code="", message="", headers=()):
        self.status_code, self.reason, self.headers = status, "", dict(headers)
        self.request = "GET /"
        self.content_type = "application/json"
        self._text = f'{{"error": {{"code": "{code}", "message": "{message}"}}}}'

    def text(self, encoding=None):
        return self._text

    def body(self):
        return self._text.encode()


def http(status, code="", message="", kind=core.HttpResponseError, **headers):
    return kind(response=Answer(status, code, message, headers.items()))


def made(kind):
    for arguments in (("no",), (Answer(400),), (["a"], "no")):
        try:
            return kind(*arguments)
        except (TypeError, AttributeError):
            continue
    raise AssertionError(kind)


CLASSES = [
    c for module in (core, azure.identity) for _, c in inspect.getmembers(module, inspect.isclass)
    if issubclass(c, Exception)
]  # fmt: skip


@pytest.mark.parametrize("kind", CLASSES, ids=lambda c: c.__name__)
def test_no_class_comes_through_raw(kind):
    """Whatever it is, it says what failed, why, and what to do."""
    raised = made(kind)
    found = translated(raised, "it was not done")
    assert isinstance(found, SreError)
    assert found.why
    assert found.hint


CASES = {
    "gone": (http(404, "ResourceNotFound", "no", core.ResourceNotFoundError), NotDeployed, "services.toml"),
    "no such group": (http(404, "ResourceGroupNotFound", "no"), InputRejected, "another plan"),
    "validation": (http(400, "ContainerAppProbeFailureThresholdOutOfRange", "1 to 30"), InputRejected, "another plan"),
    "suffix taken": (
        http(400, "InvalidParameterValueInContainerTemplate", "Revision with suffix sre-1 already exists."),
        StateConflict,
        "plan again",
    ),
    "busy": (http(409, "ContainerAppOperationInProgress", "wait"), DependencyFailed, "tried again"),
    "rival": (http(409, "Conflict", "changed"), StateConflict, "plan again"),
    "quota": (http(400, "QuotaExceeded", "no more A100"), PolicyRefused, "quota of this workload profile"),
    "denied": (http(403, "AuthorizationFailed", "no"), PolicyRefused, "role"),
    "expired": (http(401, "ExpiredAuthenticationToken", "old"), CredentialsRefused, "az login"),
    "no identity": (azure.identity.CredentialUnavailableError("none"), CredentialsRefused, "az login"),
    "throttled": (
        http(429, "TooManyRequests", "slow", **{"Retry-After": "17"}),
        DependencyFailed,
        "tried again (Azure asks for 17 s)",
    ),
    "broken": (http(503, "ServiceUnavailable", "later"), DependencyFailed, "tried again"),
    "away": (core.ServiceRequestError("no route"), DependencyFailed, "tried again"),
    "silent": (core.ServiceResponseError("time-out"), DependencyFailed, "tried again"),
    "a strange one": (OSError("socket"), DependencyFailed, "tried again"),
}


@pytest.mark.parametrize(("error", "kind", "hint"), CASES.values(), ids=CASES)
def test_an_error_says_who_must_act(error, kind, hint):
    """A resource group that is not there is no deletion of the app."""
    found = translated(error, "'gemma' was not changed")
    assert type(found) is kind
    assert hint in found.hint
    assert found.what == "'gemma' was not changed"
