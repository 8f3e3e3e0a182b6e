"""What a person at the terminal sees of a watched server: one live line of state, events above it, and a question."""

import codecs
import contextlib
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Protocol, TextIO

from agent.core.incident.incident import Incident
from agent.core.plan.action import applied
from agent.core.plan.capacity import Capacity
from agent.core.service.serving import ServingConfig
from agent.core.text.safe_text import inert
from agent.entrypoints.cli.output import for_people, for_programs
from agent.errors import SreError
from agent.ports.host import CheckResult, State
from agent.presentation.memory_bar import text_bar

TICK_S = 0.3
LINE_READ = 16_384  # of the last line of a log, before what is secret is taken out of it


class View(Protocol):
    """Shows; never decides."""

    def say(self, text: str, **about: object) -> None:
        """Add a line that stays; ``about`` is the same for programs."""
        ...

    def show(self, text: str) -> None:
        """Replace the line that tells the present state."""
        ...

    def ask(self, question: str, answers: str, still: Callable[[], bool]) -> str | None:
        """Ask for one letter of ``answers``; None where nobody can answer, or the question is moot."""
        ...

    def output(self, data: bytes) -> None:
        """Pass on what the server printed."""
        ...

    @property
    def takes_output(self) -> bool:
        """Whether output may be passed on now; not while a question stands."""
        ...

    def close(self) -> None:
        """Give the terminal back."""
        ...


class PlainView:
    """For a file or a pipe: the server's output byte for byte on one stream, our lines on the other, no question.

    Args:
        output: Where the server's output goes, a file descriptor.
        lines: Where our own lines go.
        as_json: Whether our lines are JSON, one object each.
    """

    takes_output = True

    def __init__(self, *, output: int = 1, lines: TextIO | None = None, as_json: bool = False) -> None:
        self._shown = ""
        self._output = output
        self._lines = lines or sys.stderr
        self._as_json = as_json

    def say(self, text: str, **about: object) -> None:
        """Print a line."""
        if self._as_json:
            row = {"at": datetime.now(UTC).isoformat(), "event": "message", "text": text}  # noqa: TID251 - a log's time
            text = for_programs({**row, **about})
        print(text, file=self._lines, flush=True)

    def output(self, data: bytes) -> None:
        """Write the bytes themselves, past every buffer; where a pipe does not block, wait for it here."""
        while data:
            try:
                data = data[os.write(self._output, data) :]
            except BlockingIOError:
                select.select([], [self._output], [], TICK_S)

    def show(self, text: str) -> None:
        """Print the state where its first words changed."""
        state = text.partition(";")[0]
        if state != self._shown:
            self._shown = state
            self.say(text, event="state")

    def ask(self, question: str, answers: str, still: Callable[[], bool]) -> str | None:  # noqa: ARG002
        """Say where to answer: nobody is at this end."""
        return None

    def close(self) -> None:
        """Do nothing."""


class LiveView:
    """A terminal: rich keeps one line of state at the bottom, cut to whatever width there is."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        self._text = Text
        self._console = Console(highlight=False, soft_wrap=False)
        self._live = Live(Text(""), console=self._console, refresh_per_second=4, transient=True)
        self._live.start()
        self._asking = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._tail = ""  # of the output, a line that has not ended: it would be erased with the state

    def say(self, text: str, **about: object) -> None:  # noqa: ARG002 - for people
        """Print above the state."""
        self._live.console.print(self._text(text))

    @property
    def takes_output(self) -> bool:
        """Not while a question stands: the output waits in the log."""
        return not self._asking

    def output(self, data: bytes) -> None:
        """Print whole lines above the state, without what would move the cursor or speak to the terminal."""
        text = self._tail + self._decoder.decode(data)
        sure = len(text) - text.endswith("\r")  # the other half of its end of line may still come
        end = max(text.rfind("\n", 0, sure), text.rfind("\r", 0, sure)) + 1
        if len(text) - end > LINE_READ:
            end = len(text)
        self._tail = text[end:]
        self._print(text[:end])

    def _print(self, text: str) -> None:
        if not text:
            return
        lines = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
        self._live.console.print(self._text(inert(lines, limit=len(lines) * 8), no_wrap=False, overflow="fold"))

    def show(self, text: str) -> None:
        """Replace the state; what does not fit is cut."""
        self._live.update(self._text(text, no_wrap=True, overflow="ellipsis", style="reverse"))

    def ask(self, question: str, answers: str, still: Callable[[], bool]) -> str | None:
        """Ask in the line editor of the terminal itself; goes back as soon as the question is moot."""
        self._asking = True
        self._live.stop()
        try:
            while still():
                print(f"{question} ", end="", flush=True)
                word = _line(still)
                if word is None:
                    print(flush=True)
                    return None
                if word[:1].lower() in answers and word[:1]:
                    return word[:1].lower()
            return None
        finally:
            self._live.start()
            self._asking = False

    def close(self) -> None:
        """Print what has no end of line, and stop the live line."""
        rest, self._tail = self._tail + self._decoder.decode(b"", final=True), ""
        try:
            self._print(rest)
        finally:
            self._live.stop()


def _line(still: Callable[[], bool]) -> str | None:
    """Return what was typed, or None where the question became moot or the input ended."""
    while still():
        ready, _, _ = select.select([sys.stdin], [], [], TICK_S)
        if ready:
            typed = sys.stdin.readline()
            if not typed:
                time.sleep(TICK_S)
                return None
            return typed.strip() or " "
    return None


def view(*, as_json: bool = False) -> View:
    """Return the view that suits where our output goes; JSON stands alone on standard output."""
    if as_json:
        return PlainView(output=2, lines=sys.stdout, as_json=True)
    return LiveView() if sys.stdout.isatty() and sys.stdin.isatty() else PlainView()


def state_line(service: str, state: State | None, last_check: CheckResult | None, *, now: datetime, last: str) -> str:
    """Return the state in one line, what matters most first: a narrow terminal shows the beginning."""
    start = state.newest if state is not None else None
    if start is None:
        return f"{service}: not started"
    age = (now - (start.ready_at or start.began_at)).total_seconds()
    word = "sick" if start.sick else "serving" if start.stage == "ready" else start.stage.value
    parts = [f"{service}: {word} ({start.revision}); {_span(age)}"]
    sample = last_check.sample if last_check is not None and last_check.mark == start.mark else None
    if sample is not None:
        kv = "" if sample.kv_usage is None else f", KV {sample.kv_usage:.0%}"
        parts.append(f"{sample.running or 0:.0f} running, {sample.waiting or 0:.0f} waiting{kv}")
    if start.sick:
        parts.append(for_people(start.sick))
    elif last:
        parts.append(for_people(last[:LINE_READ], limit=200, lines=False))
    return "; ".join(parts)


def not_started(plan: str) -> str:
    """Say why the command, typed again, starts nothing."""
    again = "to start it unchanged, reject the plan and run this command again"
    return f"the server has ended and is not started: plan {plan} changes it and then starts it; {again}"


def memory_lines(capacity: Capacity, incident: Incident, before: ServingConfig) -> Iterator[str]:
    """Yield the memory before a plan and, where it is ours to apply, after it, as far as the arithmetic knows it."""
    report = getattr(capacity, "report", None)
    if report is None or incident.plan is None:
        return
    shown = {"before": before}
    if not incident.plan.by_person:
        shown["after"] = applied(before, incident.plan.actions)
    for title, config in shown.items():
        with contextlib.suppress(SreError):
            yield f"  memory {title}\n{text_bar(report(incident.service, config))}"


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{max(seconds, 0):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
