"""The self-hosted model behind the OpenAI API: a list of endpoints, asked in order within one budget."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from agent.adapters.http.deadline import Deadline
from agent.adapters.model.endpoint import Endpoint
from agent.core.diagnosis.model_request import Spend
from agent.core.value import canonical
from agent.errors import DependencyFailed
from agent.ports.model import NoAnswer, Question, Reply
from agent.structured_log import structlog

if TYPE_CHECKING:
    from agent.adapters.model.chat_call import Answered, ChatCall, Form, Listing

log = structlog.get_logger(__name__)

AT_ONCE = 2  # questions under way in one process; the other workers keep taking events in
AWAKE_S = 300  # for how long a server that answered counts as awake
TEMPLATE_TOKENS = 64  # what a chat template adds to a question: roles and marks
TRIES = 2  # of one endpoint for one question, where the first ended before the server worked on it

Headers = Callable[[Endpoint], dict[str, str]]


class _Line:
    """One endpoint and what was learned about it."""

    def __init__(self, endpoint: Endpoint, clock: Callable[[], float]) -> None:
        self.endpoint = endpoint
        self.breaker = Breaker(clock)
        self.form: Form | None = None
        self.listing: Listing | None = None
        self.awake_until = float("-inf")


class _Account:
    """What a question may still cost."""

    def __init__(self, question: Question, deadline: Deadline) -> None:
        self.question = question
        self.deadline = deadline
        self.calls = 0
        self.tokens = 0
        self.tokens_out = 0

    @property
    def spent(self) -> Spend:
        took_s = self.question.limit_s - self.deadline.left_s
        return Spend(
            calls=self.calls, tokens=self.tokens, tokens_out=self.tokens_out, seconds=round(max(0.0, took_s), 3)
        )

    @property
    def tokens_left(self) -> int:
        return max(0, self.question.limit_tokens - self.tokens)


class OpenAiChat:
    """Any OpenAI-compatible endpoints, the first that may be asked and answers counts. For many threads.

    Args:
        endpoints: In the order of preference.
        headers: Who we are at an endpoint; raises DependencyFailed where that cannot be said.
        clock: Seconds that only grow, for breakers and for how long a server counts as awake.
        sleep: Waits between two tries of one endpoint.
        first_token_s: How long a server may think before its first word.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        headers: Headers,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        first_token_s: float = 20.0,
    ) -> None:
        self._lines = [_Line(endpoint, clock) for endpoint in endpoints]
        self._headers = headers
        self._clock = clock
        self._sleep = sleep
        self._first_token_s = first_token_s
        self._seats = threading.Semaphore(AT_ONCE)

    def ask(self, question: Question) -> Reply:
        """Return the first answer that an endpoint gives; see :class:`agent.ports.model.Model`."""
        account = _Account(question, Deadline(question.limit_s))
        if not self._seats.acquire(blocking=False):
            raise _nobody(["others ask at this moment"], account, again=True)
        try:
            return self._first(question, account)
        finally:
            self._seats.release()

    def judged(self, reply: Reply, *, usable: bool) -> None:
        """Count an answer that could not be used as a failure of its endpoint."""
        for line in self._lines:
            if line.endpoint.base_url == reply.endpoint:
                line.breaker.record(good=usable)

    def figures(self) -> dict[str, dict[str, object]]:
        """Return what the breakers stand at, by endpoint."""
        return {
            line.endpoint.base_url: {
                "open": line.breaker.open,
                "opened": line.breaker.opened,
                "form": line.form.value if line.form else None,
            }
            for line in self._lines
        }

    def _first(self, question: Question, account: _Account) -> Reply:
        from agent.adapters.model.chat_call import CallFailed, Failure

        why: list[str] = []
        again = False
        for line in self._lines:
            url = line.endpoint.base_url
            objection = self._objection(line, question)
            rests = "" if objection else self._rests(line, account)
            if objection or rests:
                again = again or bool(rests)
                why.append(f"{url}: {objection or rests}")
                continue
            try:
                return self._tried(line, question, account)
            except CallFailed as failed:
                line.breaker.record(good=False)
                line.awake_until = float("-inf")
                again = again or failed.failure in {Failure.UNREACHABLE, Failure.BUSY}
                why.append(f"{url}: {failed.failure} ({failed.why})")
                log.info("model.failed", endpoint=url, reason=failed.failure.value, why=failed.why)
        raise _nobody(why or ["no endpoint is configured"], account, again=again)

    def _objection(self, line: _Line, question: Question) -> str:
        """Say why an endpoint is not asked at all, or nothing."""
        if line.endpoint.service is not None and line.endpoint.service == question.patient:
            return "it is the patient"
        if line.endpoint.sleeps and not question.may_wake and self._clock() >= line.awake_until:
            return "it may sleep, and is not woken for this"
        return ""

    def _rests(self, line: _Line, account: _Account) -> str:
        """Say why an endpoint is not asked just now, or nothing."""
        if account.deadline.left_s <= 0:
            return "no time was left"
        return "" if line.breaker.admits() else "it failed several times in a row and rests"

    def _tried(self, line: _Line, question: Question, account: _Account) -> Reply:
        from agent.adapters.model.chat_call import CallFailed, Failure

        def worth_it(error: BaseException) -> bool:
            if not isinstance(error, CallFailed) or error.sent or account.deadline.left_s <= 5:
                return False
            return error.failure in {Failure.UNREACHABLE, Failure.BUSY}

        tries = Retrying(
            stop=stop_after_attempt(TRIES),
            wait=wait_random_exponential(multiplier=0.5, max=2),
            retry=retry_if_exception(worth_it),
            sleep=self._sleep,
            reraise=True,
        )
        with self._call(line, account) as call:
            return tries(self._asked, call, line, question, account)

    @contextmanager
    def _call(self, line: _Line, account: _Account) -> "Iterator[ChatCall]":
        from agent.adapters.model.chat_call import CallFailed, ChatCall, Failure

        try:
            headers = self._headers(line.endpoint)
        except DependencyFailed as error:
            raise CallFailed(Failure.REFUSED, error.why, sent=False) from error
        call = ChatCall(line.endpoint, headers, account.deadline, first_token_s=self._first_token_s)
        try:
            yield call
        finally:
            call.close()

    def _asked(self, call: "ChatCall", line: _Line, question: Question, account: _Account) -> Reply:
        listing = line.listing
        if listing is None or self._clock() >= line.awake_until:
            listing = call.listing()
        line.listing, line.awake_until = listing, self._clock() + AWAKE_S
        used, messages, bound = self._fitted(call, listing, question, account)
        answered = self._said(call, line, listing.model, question, account, messages=messages, bound=bound)
        tokens_in = bound if answered.tokens_in is None else answered.tokens_in
        tokens_out = question.max_tokens if answered.tokens_out is None else answered.tokens_out
        account.tokens += tokens_in + tokens_out
        account.tokens_out += tokens_out
        spent = account.spent
        return Reply(
            text=answered.text,
            model=listing.model,
            endpoint=line.endpoint.base_url,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            took_s=spent.seconds,
            finished=answered.finished,
            used=used,
            spent=spent,
        )

    def _fitted(
        self, call: "ChatCall", listing: "Listing", question: Question, account: _Account
    ) -> tuple[int, list[dict[str, str]], int]:
        """Choose the longest text that fits window and budget; a byte is never less than a token."""
        from agent.adapters.model.chat_call import CallFailed, Failure

        room = min(listing.window or account.tokens_left, account.tokens_left) - question.max_tokens
        for used, user in enumerate((question.user, *question.shorter)):
            messages = [{"role": "system", "content": question.system}, {"role": "user", "content": user}]
            bound = len(canonical(messages)) + TEMPLATE_TOKENS
            if bound > room > 0:
                counted = call.tokens(listing.model, messages)
                bound = counted if counted is not None else bound
            if bound <= room:
                return used, messages, bound
        raise CallFailed(Failure.BROKEN, f"the question does not fit into {room} tokens", sent=False)

    def _said(
        self,
        call: "ChatCall",
        line: _Line,
        model: str,
        question: Question,
        account: _Account,
        *,
        messages: list[dict[str, str]],
        bound: int,
    ) -> "Answered":
        """Ask in the form that the server knows; one that knows no schema is not used."""
        from agent.adapters.model.chat_call import CallFailed, Failure, Form

        schema = json.loads(question.answer_schema)  # not strict: a schema of ours
        for form in (line.form,) if line.form else (Form.JSON_SCHEMA, Form.JSON_OBJECT):
            if account.calls >= question.limit_calls:
                raise CallFailed(Failure.BROKEN, "no further question may be sent", sent=False)
            account.calls += 1
            try:
                answered = call.answer(model, messages, schema=schema, form=form, max_tokens=question.max_tokens)
            except CallFailed as failed:
                account.tokens += bound + question.max_tokens if failed.sent else 0
                account.tokens_out += question.max_tokens if failed.sent else 0
                if failed.failure is not Failure.CANNOT:
                    raise
                continue
            line.form = form
            return answered
        raise CallFailed(Failure.BROKEN, "it takes no schema for its answer", sent=False)


def _nobody(why: list[str], account: _Account, *, again: bool) -> NoAnswer:
    return NoAnswer(
        "the model did not answer",
        why="; ".join(why)[:500],
        hint="no action needed: the rule-based diagnosis stands" + (", and it is asked again" if again else ""),
        spent=account.spent,
        again=again,
    )


OPENS_AFTER = 3  # failures in a row
RESTS_S = 30.0  # nothing is let through for so long; then one call is, and the next after as long again


class Breaker:
    """Counts failures in a row. For many threads.

    Args:
        clock: Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._closed_until_probe = 0.0
        self.opened = 0

    @property
    def open(self) -> bool:
        """Whether it is open or tries."""
        return self._failures >= OPENS_AFTER

    def admits(self) -> bool:
        """Whether a call may go through now; while open, one for each rest."""
        with self._lock:
            if not self.open:
                return True
            now = self._clock()
            if now < self._closed_until_probe:
                return False
            self._closed_until_probe = now + RESTS_S
            return True

    def record(self, *, good: bool) -> None:
        """Count how a call ended."""
        with self._lock:
            if good:
                self._failures = 0
                return
            self._failures += 1
            if self._failures == OPENS_AFTER:
                self.opened += 1
            if self.open:
                self._closed_until_probe = self._clock() + RESTS_S
