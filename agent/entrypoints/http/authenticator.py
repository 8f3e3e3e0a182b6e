"""What proves to the deciding function who somebody is: a Google ID token, an IAP assertion, a cluster token."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agent.core.decision.decision import Channel
from agent.core.decision.signed_request import Signed
from agent.core.value import Value
from agent.errors import InputRejected
from agent.ports.clock import Clock
from agent.ports.token_review import TokenReview

TOKEN_HEADER = "X-Sre-Id-Token"  # noqa: S105 - a header's name
"""A header of our own: Cloud Run may take the signature off a token in ``Authorization`` that it has checked itself,
and a token without its signature proves nothing to us."""

ASSERTION_HEADER = "X-Sre-Assertion"
"""In it the console hands on, where it only asks, what Identity-Aware Proxy signed for its visitor."""

SHARED_FRESH_S = 600
"""Maximum age in seconds of a token that other services accept too; gcloud makes a new one at every call."""

Keys = Callable[[str], Mapping[str, Any] | None]


class Unauthenticated(InputRejected):
    """Nothing proves who sent the request."""


class Principal(Value):
    """Somebody who is who they say.

    Attributes:
        who: The identity as the channel proves it: an e-mail address, or a Kubernetes username.
        channel: Through what they speak.
        mark: A name of the very token, without its content.
        until: When it stops being accepted.
        shared: Whether its audience is not ours alone, so that whoever else was given it can send it on.
    """

    who: str
    channel: Channel
    mark: str
    until: datetime
    shared: bool = False

    def use(self, act: str) -> Signed:
        """Return the one use of this token for an act; a shared token is good for one act in all."""
        return Signed(once=f"token:{self.mark}" if self.shared else f"token:{self.mark}:{act}", until=self.until)


@dataclass(frozen=True, kw_only=True)
class Authenticator:
    """What people are known by.

    Attributes:
        clock: The time to check validity with.
        audiences: For whom an ID token may have been made; none refuses every token.
        own: The audience that is ours alone: the address of this very function.
        google: Public keys of Google's accounts.
        iap_audience: The audience of the console behind Identity-Aware Proxy; None refuses every assertion.
        iap: Public keys of the proxy.
        review: Asks the cluster about its own tokens; None refuses them.
    """

    clock: Clock
    google: Keys
    iap: Keys
    audiences: tuple[str, ...] = ()
    own: str | None = None
    iap_audience: str | None = None
    review: TokenReview | None = None

    def operator(self, headers: Mapping[str, str]) -> Principal:
        """Return whose token came with a request: an ID token of Google, or one of the cluster.

        Raises:
            Unauthenticated: None came, or there is any doubt about it.
            DependencyFailed: Google's keys could not be had, or the cluster did not answer.
        """
        given = [value for name, value in headers.items() if name.lower() == TOKEN_HEADER.lower()]
        if len(given) != 1 or not given[0]:
            raise _unproven(f"the request carries no ID token in {TOKEN_HEADER}")
        if self.review is not None and not _is_of_google(given[0]):
            return self.cluster_user(given[0])
        if not any(self.audiences):
            raise _unproven(
                "this installation accepts no audience", hint="set ID_TOKEN_AUDIENCES; see docs/security.md"
            )
        from agent.entrypoints.http.id_token import verified_id_token

        now = self.clock.now()
        try:
            said = verified_id_token(given[0], audiences=self.audiences, keys=self.google, now=now)
        except InputRejected as error:
            raise _unproven(error.why, hint=error.hint) from error
        shared = said.audience != self.own
        if shared and now.timestamp() - said.issued_s > SHARED_FRESH_S:
            why = f"the ID token is more than {SHARED_FRESH_S} s old, and its audience is not ours alone"
            raise _unproven(why, hint="get a fresh one: gcloud auth print-identity-token")
        return _principal(given[0], said.email, said.expires_s, Channel.COMMAND_LINE, shared=shared)

    def principal(self, headers: Mapping[str, str], assertion: str | None) -> Principal:
        """Return who says something: by the assertion that the console hands on, or else by the request's own token.

        Raises:
            Unauthenticated: Any doubt.
            DependencyFailed: What proves it could not be asked.
        """
        return self.operator(headers) if assertion is None else self.visitor(assertion)

    def cluster_user(self, token: str) -> Principal:
        """Return the bearer of a cluster's token.

        Raises:
            Unauthenticated: Any doubt, or the agent is not in a cluster.
            DependencyFailed: The API server could not be asked.
        """
        if self.review is None:
            raise _unproven("this installation asks no cluster about tokens", hint="see docs/kubernetes.md")
        from agent.entrypoints.http.kubernetes_token import reviewed_token

        try:
            said = reviewed_token(token, review=self.review, now=self.clock.now())
        except InputRejected as error:
            raise _unproven(error.why, hint=error.hint) from error
        return _principal(token, said.username, said.expires_at.timestamp(), Channel.KUBERNETES)

    def visitor(self, assertion: str) -> Principal:
        """Return the person of an assertion that the console hands on.

        Raises:
            Unauthenticated: Any doubt.
            DependencyFailed: The proxy's keys could not be had.
        """
        if not self.iap_audience:
            raise _unproven("this installation accepts no assertion", hint="set IAP_AUDIENCE, as for the console")
        from agent.entrypoints.http.assertion import verified_claims

        try:
            said = verified_claims(assertion, audience=self.iap_audience, keys=self.iap, now=self.clock.now())
        except InputRejected as error:
            raise _unproven(error.why, hint=error.hint) from error
        return _principal(assertion, said.email, said.expires_s, Channel.CONSOLE)


def _is_of_google(raw: str) -> bool:
    """Whether a token names Google as its issuer: such a one is never shown to the cluster, and proves nothing yet."""
    from agent.entrypoints.http.id_token import ID_TOKEN, ISSUERS
    from agent.entrypoints.http.signed_token import read_claims

    try:
        return read_claims(raw, ID_TOKEN).get("iss") in ISSUERS
    except InputRejected as error:
        raise _unproven(error.why, hint=error.hint) from error


def _principal(raw: str, who: str, expires_s: float, channel: Channel, *, shared: bool = False) -> Principal:
    """A token has one form only (the reader takes no other), so its digest names it."""
    mark = hashlib.sha256(raw.encode()).hexdigest()
    until = datetime.fromtimestamp(expires_s + 60, UTC)
    return Principal(who=who, channel=channel, mark=mark, until=until, shared=shared)


def _unproven(why: str, *, hint: str = "see docs/security.md, 'Deciding from the command line'") -> Unauthenticated:
    return Unauthenticated("the request was not taken", why=why, hint=hint)
