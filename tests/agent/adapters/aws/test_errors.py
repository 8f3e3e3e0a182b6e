"""Errors of the AWS SDK become ours, with what the reader can do."""

import inspect

import pytest
from botocore import exceptions as sdk

from agent.adapters.aws.errors import table, translated
from agent.errors import CredentialsRefused, DependencyFailed, InputRejected, PolicyRefused, SreError, StateConflict


def client_error(code: str, status: int = 400) -> sdk.ClientError:
    meta = {"Error": {"Code": code, "Message": "as AWS says it"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return sdk.ClientError(meta, "SomeOperation")


@pytest.mark.parametrize(
    ("code", "status", "kind", "hint"),
    [
        ("ThrottlingException", 400, DependencyFailed, "throttled"),
        ("RequestLimitExceeded", 503, DependencyFailed, "throttled"),
        ("ExpiredTokenException", 400, CredentialsRefused, "sign in again"),
        ("UnauthorizedOperation", 403, PolicyRefused, "docs/ec2.md"),
        ("AccessDeniedException", 400, PolicyRefused, "docs/ec2.md"),
        ("InvalidInstanceID.NotFound", 400, InputRejected, "services.toml"),
        ("InvalidInstanceId", 400, DependencyFailed, "SSM agent"),
        ("IncorrectInstanceState", 400, StateConflict, "plan again"),
        ("InsufficientInstanceCapacity", 500, DependencyFailed, "another zone"),
        ("VcpuLimitExceeded", 400, PolicyRefused, "quota"),
        ("Unsupported", 400, InputRejected, "instance type"),
        ("SomethingNew", 400, InputRejected, "another plan"),
        ("InternalError", 500, DependencyFailed, "tried again"),
    ],
)
def test_a_code_of_aws_says_who_must_act(code, status, kind, hint):
    """Its own words are kept beside the hint."""
    ours = translated(client_error(code, status), "ec2:StartInstances failed")
    assert type(ours) is kind
    assert hint in ours.hint
    assert "as AWS says it" in ours.why


def test_every_exception_of_the_sdk_has_a_place():
    """A walk over the library: whatever it raises is ours by its nearest relative, also what comes with a new version."""
    known = table()
    raised = [
        e
        for _, e in inspect.getmembers(sdk, inspect.isclass)
        if issubclass(e, Exception) and not issubclass(e, Warning) and e.__module__ == sdk.__name__
    ]
    assert len(raised) > 80
    assert [e.__name__ for e in raised if not any(base in known for base in e.__mro__)] == []


@pytest.mark.parametrize("error", [OSError("no route"), ValueError("odd")], ids=["wire", "unknown"])
def test_what_is_no_answer_may_be_tried_again(error):
    """Nobody knows that it can never work."""
    assert isinstance(translated(error, "it failed"), DependencyFailed)


def test_an_error_of_ours_stays():
    """It says more than the wrapping would."""
    own = PolicyRefused("a", why="b", hint="c")
    assert translated(own, "it failed") is own
    assert isinstance(own, SreError)
