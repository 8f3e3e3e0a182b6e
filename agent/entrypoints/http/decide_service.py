"""What the deciding function answers with: keys of those it knows, and threads that a slow store cannot take up."""

import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar

from flask import Response, request
from werkzeug.exceptions import HTTPException

from agent.app.channels import decider_secrets, slack_reply, slack_secret
from agent.app.http_clients import google_keys, proxy_keys
from agent.app.stores import machine_clock
from agent.entrypoints.http.application import RawResponse, refusal, response
from agent.entrypoints.http.authenticator import Authenticator
from agent.errors import DependencyFailed, PolicyRefused, SreError
from agent.ports.clock import Clock
from agent.ports.stage_context import StageContext
from agent.ports.token_review import TokenReview
from agent.settings import Settings
from agent.structured_log import structlog

ANSWER_S = 2.0  # of the three seconds that Slack waits
WORKERS = 16
READ_S = 20.0
READERS = 4
NOT_RECORDED = "not recorded, press again"

T = TypeVar("T")

log = structlog.get_logger(__name__)


class Replayed(PolicyRefused):
    """The request was used before."""


class Workers:
    """A few threads that work for requests, so that a request can give up waiting; they end with the process."""

    def __init__(self, count: int = WORKERS) -> None:
        self._count = count
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._started = 0
        self._lock = threading.Lock()

    def within(self, seconds: float, work: Callable[[], T], *, what: str = "the answer was not recorded") -> T:
        """Return what ``work`` returns, or raise what it raises.

        Raises:
            DependencyFailed: It did not end in time; it may still end, and whoever asks again is told.
        """
        done: queue.SimpleQueue[T | Exception] = queue.SimpleQueue()

        def run() -> None:
            try:
                done.put(work())
            except Exception as error:  # noqa: BLE001 - raised where it is waited for
                done.put(error)

        self._start()
        self._waiting.put(run)
        try:
            result = done.get(timeout=seconds)
        except queue.Empty:
            raise DependencyFailed(what, why=f"the store did not answer in {seconds:g} s", hint="press again") from None
        if isinstance(result, Exception):
            raise result
        return result

    def _start(self) -> None:
        with self._lock:
            if self._started < self._count:
                self._started += 1
                threading.Thread(target=self._work, name=f"decide-{self._started}", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._waiting.get()()


@dataclass(frozen=True, kw_only=True)
class DecideService:
    """What the deciding function is made of.

    Attributes:
        context: Of the owner `decide`.
        clock: The machine's own; asking the store for the time would let a store that hangs hold up the check.
        slack_secret: The app's signing secret; None refuses every press.
        webhook_secrets: By identity.
        pagerduty_secrets: Of PagerDuty's webhook; none refuses every one.
        reply: Says something to one person at the place Slack named; returns at once.
        replace: Puts another message in the place of the pressed one; returns at once.
        answer_s: How long a request waits for the store, seconds.
        authenticator: What the command line and the console are known by; None has no such place.
        readers: Threads of those who only look, so that nobody who decides waits for them.
        read_s: How long they wait for the store, seconds.
    """

    context: StageContext
    clock: Clock
    slack_secret: bytes | None = None
    webhook_secrets: Mapping[str, tuple[bytes, ...]] = field(default_factory=dict)
    pagerduty_secrets: tuple[bytes, ...] = ()
    reply: Callable[[str, str], None] = lambda _url, _text: None
    replace: Callable[[str, dict[str, Any]], None] = lambda _url, _message: None
    workers: Workers = field(default_factory=Workers)
    answer_s: float = ANSWER_S
    authenticator: Authenticator | None = None
    readers: Workers = field(default_factory=lambda: Workers(READERS))
    read_s: float = READ_S


def until(answer_s: float) -> Callable[[], bool]:
    """Return what says whether somebody still waits."""
    ends = time.monotonic() + answer_s
    return lambda: time.monotonic() < ends


def open_decide_service(
    settings: Settings, context: StageContext, *, review: TokenReview | None = None
) -> DecideService:
    """Return the service of an installation; without secrets in the settings it refuses everything.

    Args:
        settings: The installation.
        context: Of the owner `decide`.
        review: Asks the cluster about its own tokens, where the agent lives in one.
    """
    words = slack_reply()
    return DecideService(
        context=context,
        clock=machine_clock(),
        slack_secret=slack_secret(settings),
        webhook_secrets=decider_secrets(settings),
        pagerduty_secrets=tuple(secret.get_secret_value().encode() for secret in settings.pagerduty_secrets),
        reply=words,
        replace=words.replace,
        authenticator=make_authenticator(settings, review=review),
    )


def make_authenticator(settings: Settings, *, review: TokenReview | None = None) -> Authenticator:
    """Return what people of the command line and the console are known by; nothing is fetched before it is needed."""
    clock = machine_clock()
    return Authenticator(
        clock=clock,
        google=google_keys(clock),
        iap=proxy_keys(clock),
        audiences=settings.id_token_audiences,
        own=settings.decide_url,
        iap_audience=settings.iap_audience,
        review=review,
    )


def answered(work: Callable[[], RawResponse], refused: Callable[[SreError], RawResponse]) -> Response:
    """Return what a piece of work answers, or the refusal of the error that it raised."""
    try:
        return response(work())
    except SreError as error:
        log.info("request.refused", place=request.path[:60], error=type(error).__name__, says=str(error))
        return response(refused(error))
    except HTTPException:  # such as a body that is too large: the application says so
        raise
    except Exception:
        log.exception("decision.failed")
        return response(refusal(HTTPStatus.SERVICE_UNAVAILABLE, NOT_RECORDED))
