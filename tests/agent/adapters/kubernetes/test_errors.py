"""Every error of the official client becomes one of ours, in the API server's words."""

import json
from types import ModuleType

import pytest
import urllib3.exceptions
from kubernetes import config
from kubernetes.client import exceptions

from agent.adapters.kubernetes.errors import error_text, patch_failed, table, translated
from agent.errors import CredentialsRefused, DependencyFailed, InputRejected, PolicyRefused, SreError, StateConflict

STATUSES = {
    400: InputRejected,
    401: CredentialsRefused,
    403: PolicyRefused,
    404: InputRejected,
    409: StateConflict,
    410: StateConflict,
    422: InputRejected,
    429: DependencyFailed,
    500: DependencyFailed,
    503: DependencyFailed,
    504: DependencyFailed,
    0: DependencyFailed,
}


def raised_by(module: ModuleType) -> list[type[Exception]]:
    """Every class of errors that a module defines."""
    return [
        c
        for c in vars(module).values()
        if isinstance(c, type) and issubclass(c, Exception) and c.__module__ == module.__name__
    ]


@pytest.mark.parametrize("kind", [*raised_by(exceptions), config.ConfigException, *raised_by(urllib3.exceptions)])
def test_no_error_of_the_client_is_unmapped(kind: type[Exception]) -> None:
    """A new class of theirs is found by its nearest known base, and no other base than Exception is left."""
    assert any(base in table() for base in kind.__mro__) or issubclass(kind, Warning)


@pytest.mark.parametrize(("status", "ours"), STATUSES.items(), ids=map(str, STATUSES))
def test_a_status_says_who_must_act(status: int, ours: type[SreError]) -> None:
    """Sender, rival, person or dependency, with the server's own words."""
    body = json.dumps({"kind": "Status", "message": "what the server says", "reason": "Reason", "code": status})
    error = translated(exceptions.ApiException(status=status, body=body), "it failed")
    assert type(error) is ours
    assert error.why == "what the server says"


REFUSALS = {
    "quota": ('pods "a" is forbidden: exceeded quota: gpus, requested: 1, used: 1, limited: 1', "ResourceQuota"),
    "webhook": ('admission webhook "policy.example.com" denied the request: no', "admission webhook"),
    "rights": ('deployments.apps "a" is forbidden: User "x" cannot patch resource', "doctor"),
}


@pytest.mark.parametrize(("message", "hint"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_names_whom_to_ask(message: str, hint: str) -> None:
    """A quota, a webhook and a missing right are all 403."""
    error = translated(exceptions.ForbiddenException(status=403, body=json.dumps({"message": message})), "it failed")
    assert isinstance(error, PolicyRefused)
    assert message in str(error)
    assert hint in error.hint


def test_expired_credentials_are_no_missing_right() -> None:
    error = exceptions.ApiException(status=401, reason="Unauthorized")
    assert "log in to the cluster again" in translated(error, "it was not read").hint


def test_causes_that_the_message_leaves_out_are_told() -> None:
    """And nothing that is said already is said twice."""
    causes = [{"message": "first"}, {"message": "a cause"}]
    body = json.dumps({"message": "the first", "details": {"causes": causes}})
    assert error_text(exceptions.ApiException(status=422, body=body)) == "the first; a cause"


@pytest.mark.parametrize("body", ["", "not json", "[]", '{"a": 1, "a": 2}'])
def test_a_body_that_is_no_status_does_no_harm(body: str) -> None:
    """A proxy in between answers as it likes."""
    assert error_text(exceptions.ApiException(status=502, reason="Bad Gateway", body=body)) == "Bad Gateway"


def test_a_patch_that_does_not_apply_is_told_from_an_invalid_object() -> None:
    """The server names what is invalid; of a patch it says no more than that it was in error."""
    generic = {"message": "the server rejected our request due to an error in our request"}
    assert patch_failed(exceptions.ApiException(status=422, body=json.dumps(generic)))
    assert not patch_failed(exceptions.ApiException(status=422, body='{"message": "spec.x: Invalid value"}'))
    assert not patch_failed(exceptions.ApiException(status=400, body=json.dumps(generic)))
    assert not patch_failed(None)


def test_an_error_of_ours_stays_what_it_is() -> None:
    own = StateConflict("a", why="b", hint="c")
    assert translated(own, "other") is own
