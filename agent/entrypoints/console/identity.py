"""Who looks at the page: the operator of this machine, whom an IAP assertion names, or anybody who may only read."""

from collections.abc import Callable
from typing import Protocol

from werkzeug.datastructures import Headers

from agent.core.decision.decision import Channel, Person
from agent.entrypoints.http.assertion import verified_claims
from agent.entrypoints.http.decide_service import DecideService
from agent.entrypoints.http.signed_token import Keys
from agent.errors import InputRejected, PolicyRefused
from agent.ports.clock import Clock

ASSERTION = "X-Goog-IAP-JWT-Assertion"


class Identity(Protocol):
    """Tells who sent a request.

    Attributes:
        local: Whether the service is for this machine alone; then host names are checked too.
    """

    @property
    def local(self) -> bool:
        """Whether only this machine may ask."""
        ...

    def person(self, headers: Headers) -> Person:
        """Return who asks.

        Raises:
            PolicyRefused: Nobody that we know.
            DependencyFailed: The keys to check it with could not be had.
        """
        ...


class LocalOperator:
    """Whoever sits at this machine; the name is taken on trust and shown as not verified."""

    local = True

    def __init__(self, name: str) -> None:
        self._person = Person(who=name, channel=Channel.CONSOLE, verified=False)

    def person(self, headers: Headers) -> Person:  # noqa: ARG002 - no header says who sits here
        """Return the operator, whatever the headers claim."""
        return self._person


def name_of(service: DecideService) -> Callable[[str], Person]:
    """Return what tells whom a token of the cluster belongs to, within the time that a page may take."""

    def named(token: str) -> Person:
        authenticator = service.authenticator
        assert authenticator is not None, "where a cluster reviews tokens, operators are known by them"
        found = service.workers.within(
            service.answer_s, lambda: authenticator.cluster_user(token), what="the token was not checked"
        )
        return Person(who=found.who, channel=found.channel, verified=True)

    return named


class AnyReader:
    """Whoever reaches a console that is bound outside this machine: being there proves nothing, so they may read."""

    local = False

    def person(self, headers: Headers) -> Person:  # noqa: ARG002 - no header of a reader proves anything
        """Return somebody without a name, whatever the headers claim."""
        return Person(who="", channel=Channel.CONSOLE, verified=False)


class IapPerson:
    """The person whom Identity-Aware Proxy let in, from its signed assertion and from nothing else.

    The plain headers (``X-Goog-Authenticated-User-Email``) can be set by anybody who reaches us around the proxy.
    https://cloud.google.com/iap/docs/signed-headers-howto (2026-11-21)
    """

    local = False

    def __init__(self, *, audience: str, keys: Keys, clock: Clock) -> None:
        """Take what an assertion is checked with.

        Args:
            audience: The one audience that counts, as IAP shows it for this backend.
            keys: IAP's public keys.
            clock: The time to check validity with.
        """
        self._audience, self._keys, self._clock = audience, keys, clock

    def person(self, headers: Headers) -> Person:
        """Return the person of the assertion; see the protocol."""
        raw = headers.get(ASSERTION)
        if not raw:
            raise _unknown("the request carries no signed assertion of Identity-Aware Proxy")
        try:
            claims = verified_claims(raw, audience=self._audience, keys=self._keys, now=self._clock.now())
        except InputRejected as error:
            raise _unknown(error.why) from error
        return Person(who=claims.email, channel=Channel.CONSOLE, verified=True)


def _unknown(why: str) -> PolicyRefused:
    return PolicyRefused("you are not signed in", why=why, hint="open the console through its IAP address and sign in")
