"""A request of somebody with a token: its body read, its token used once, and what came of it answered."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, TypeVar

from pydantic import ValidationError

from agent.core.value import Value, mistakes_of
from agent.entrypoints.http.application import RawResponse, refusal
from agent.entrypoints.http.authenticator import Principal, Unauthenticated
from agent.entrypoints.http.decide_service import DecideService, Replayed
from agent.errors import DependencyFailed, InputRejected, NotFound, PolicyRefused, SreError, StateConflict
from agent.strict_json import read_object

BODY_LIMIT: Final = 20_480
HINT: Final = "send the body that docs/security.md shows, or use the command line"

T = TypeVar("T")
F = TypeVar("F", bound=Value)


def use_token_once(service: DecideService, principal: Principal, act: str, work: Callable[[], T]) -> T:
    """Use the token up for this act, then do it; what came to nothing may be tried again with the same token."""
    use, control = principal.use(act), service.context.control_store()
    if not control.use_once(use.once, at=service.clock.now(), until=use.until):
        raise Replayed(
            "the request was not taken",
            why="this token was used for it before" if not principal.shared else "this token was used before",
            hint="look at what was recorded: sre-agent incidents; a fresh token may ask again",
        )
    try:
        return work()
    except SreError:
        control.give_back(use.once)
        raise


def require_approver(service: DecideService, principal: Principal) -> None:
    """Refuse whom the policy names for nothing."""
    policy = service.context.rules.policy
    if policy.approver(principal.channel, principal.who) is None:
        raise PolicyRefused(
            "the request was refused",
            why=policy.bars(principal.channel, principal.who, ""),
            hint="ask an approver, or have yourself added to policy.toml; see docs/policy.md",
        )


def read_body(form: type[F], headers: Mapping[str, str], body: bytes) -> F:
    """Read a JSON body into a form.

    Raises:
        InputRejected: It is none, or not of that form.
    """
    kind = {name.lower(): value for name, value in headers.items()}.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise InputRejected("the request was not read", why="it is not application/json", hint=HINT)
    try:
        return form.model_validate(read_object(body, what="request", limit=BODY_LIMIT, hint=HINT))
    except ValidationError as error:
        raise InputRejected("the request was not read", why=mistakes(error), hint=HINT) from error


def mistakes(error: ValueError) -> str:
    """Return what is wrong with an input, field by field."""
    if not isinstance(error, ValidationError):
        return str(error)[:200]
    return "; ".join(mistakes_of(error))[:500]


def refusal_of(error: SreError) -> RawResponse:
    """Return the answer that says ``what``, ``why`` and ``hint``."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), HTTPStatus.SERVICE_UNAVAILABLE)
    return refusal(status, str(error), what=error.what, why=error.why, hint=error.hint)


_STATUS: Final = (
    (NotFound, HTTPStatus.NOT_FOUND),
    (Unauthenticated, HTTPStatus.UNAUTHORIZED),
    (Replayed, HTTPStatus.CONFLICT),
    (StateConflict, HTTPStatus.CONFLICT),
    (PolicyRefused, HTTPStatus.FORBIDDEN),
    (InputRejected, HTTPStatus.BAD_REQUEST),
    (DependencyFailed, HTTPStatus.SERVICE_UNAVAILABLE),
)
