"""A scenario is what was recorded of one service: its configuration, and which starts came up or failed."""

import json
import re
import tomllib
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import AwareDatetime, Field, ValidationError, field_validator, model_validator

from agent.adapters.logs.file import timed_lines
from agent.core.change.verification import Check
from agent.core.service.container_args import flag_map, served_model
from agent.core.service.serving import Probe, ServingConfig, Traffic
from agent.core.value import Value, mistakes_of
from agent.errors import InputRejected
from agent.ports.logs import LogLine

Test = str | tuple[str, ...]  # "= 8192", ">= 790", "!= x", "absent", "present", "any"; of several one must hold

_TEST = re.compile(r"^(=|!=|>=|<=|>|<)\s+(.+)$")


def facts(config: ServingConfig) -> dict[str, str]:
    """Return the facts by name: flags, environment, probes by their whole budget, resources, volumes, the model."""
    found = {f"flag {name}": _plain(value) for name, value in flag_map(config.args).items() if name != "model"}
    found["model"] = served_model(config.command, config.args) or ""
    found["image"] = config.image
    found |= {f"env {e.name}": e.value if e.value is not None else f"secret {e.secret}" for e in config.env}
    found |= {f"volume {v.name} options": " ".join(sorted(v.options)) for v in config.volumes}
    found |= _probe("startup_probe", config.startup_probe or Probe())
    if config.liveness_probe is not None:
        found |= _probe("liveness_probe", config.liveness_probe)
    plain = (
        "cpu",
        "memory_mib",
        "accelerator",
        "accelerator_count",
        "min_instances",
        "max_instances",
        "concurrency",
        "request_timeout_s",
    )
    found |= {name: _plain(str(getattr(config, name))) for name in plain if getattr(config, name) is not None}
    return found


def _probe(name: str, probe: Probe) -> dict[str, str]:
    said = {"kind": probe.kind, "path": probe.path, "port": probe.port, "budget_s": probe.budget_s}
    return {f"{name} {key}": str(value) for key, value in said.items() if value is not None}


def _plain(value: str) -> str:
    """Numbers are equal however they are written."""
    number = _number(value)
    return f"{number:g}" if number is not None and abs(number) < 1e6 else value


def _number(word: str | None) -> float | None:
    try:
        return float(word) if word is not None else None
    except ValueError:
        return None


def holds(test: Test, value: str | None) -> bool:
    """Whether a fact passes a test; None means that the fact is absent."""
    if not isinstance(test, str):
        return any(holds(one, value) for one in test)
    if test in {"absent", "present", "any"}:
        return test == "any" or (value is None) == (test == "absent")
    found = _TEST.match(test)
    assert found is not None, f"{test!r} is no test; scenarios are checked when they are read"
    sign, wanted = found[1], found[2].strip()
    if value is None:
        return sign == "!="
    if sign in {"=", "!="}:
        return (_plain(value) == _plain(wanted)) == (sign == "=")
    left, right = _number(value), _number(wanted)
    if left is None or right is None:
        return False
    return {">=": left >= right, "<=": left <= right, ">": left > right, "<": left < right}[sign]


def mistaken(test: Test) -> bool:
    """Whether a test is none that :func:`holds` understands."""
    if not isinstance(test, str):
        return any(mistaken(one) for one in test)
    return test not in {"absent", "present", "any"} and _TEST.match(test) is None


LIVE = "live"  # the name of the start that stands when the rehearsal opens


class Basis(StrEnum):
    """How we know an outcome."""

    RECORDED = "recorded"  # this start is on record
    DERIVED = "derived"  # it follows from a start on record; ``source`` says how
    COMPUTED = "computed"  # the arithmetic says so, nobody saw it
    NONE = "not recorded"


class Result(StrEnum):
    """How a start ended."""

    CAME_UP = "came_up"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Measured(Value):
    """A measurement on record; for speed, ``value`` is compared with what the owner needs, tokens per second."""

    check: Literal[Check.COMPLETION, Check.TOKENS, Check.SPEED]
    good: bool | None = None
    value: float | None = None
    first_token_s: float | None = Field(default=None, ge=0)
    says: str


class Recording(Value):
    """Files of one start, relative to the scenario, and when that start began."""

    log: str | None = None
    events: str | None = None
    revision: str = ""
    began_at: AwareDatetime


class Outcome(Value):
    """How one configuration started.

    Attributes:
        after_s: From the start of the container to the end of the start, seconds, not compressed.
        crashes_after_s: From ready to the crash, for a start that came up and died.
        when: What differs from the live configuration, by fact; everything else must be equal.
        source: Who saw it, where, and which part was filled in.
    """

    name: str
    result: Literal[Result.CAME_UP, Result.FAILED]
    basis: Literal[Basis.RECORDED, Basis.DERIVED] = Basis.RECORDED
    after_s: float = Field(ge=0)
    crashes_after_s: float | None = Field(default=None, ge=0)
    when: dict[str, Test] = Field(default_factory=dict)
    message: str = ""
    source: str = Field(min_length=1)
    recording: Recording | None = None
    measured: tuple[Measured, ...] = ()

    @model_validator(mode="after")
    def _explained(self) -> Self:
        wrong = [f"{key} = {test!r}" for key, test in self.when.items() if mistaken(test)]
        if wrong:
            raise ValueError(f"no test: {', '.join(wrong)}; want '= x', '>= 1', 'absent', 'present' or 'any'")
        if (self.result is Result.FAILED or self.crashes_after_s is not None) and not self.message:
            raise ValueError("a start that failed or crashed needs the platform's message")
        if self.result is Result.FAILED and (self.measured or self.crashes_after_s is not None):
            raise ValueError("a start that failed has nothing measured")
        return self


class LiveStart(Value):
    """The service as the rehearsal opens; ``ready`` None while it starts."""

    revision: str
    generation: int = Field(default=1, ge=1)
    ready: bool | None
    message: str = ""
    latest_ready_revision: str | None = None
    spare_accelerator: bool | None = None
    traffic: tuple[Traffic, ...] = (Traffic(percent=100),)
    config: ServingConfig
    instance: str | None = None
    recording: Recording | None = None
    measured: tuple[Measured, ...] = ()


class Scenario(Value):
    """One service's recorded world.

    Attributes:
        takes_changes: False where the platform has no stand-in and a person makes the changes.
        by_person: The recorded start that a person's work led to, where ``takes_changes`` is False; its events are
            acted out when somebody takes the task on.
        compression: Waits are divided by it; every text that is shown says so.
        needs_tokens_per_s: What the owner needs, to judge a recorded speed.
        free: Facts (with ``*``) that do not decide whether a start succeeds.
        same_as_absent: Facts with the value that means the same as leaving them out.
        unknown_after_s: How long a start takes whose end nobody recorded.
    """

    service: str
    platform: str
    title: str
    source: str = Field(min_length=1)
    takes_changes: bool = True
    by_person: str | None = None
    compression: float = Field(default=1, ge=1)
    needs_tokens_per_s: float | None = Field(default=None, gt=0)
    free: tuple[str, ...] = ()
    same_as_absent: dict[str, str] = Field(default_factory=dict)
    unknown_after_s: float = Field(default=60, ge=0)
    live: LiveStart
    outcome: tuple[Outcome, ...] = ()
    folder: Path = Field(default=Path(), exclude=True)

    @field_validator("outcome")
    @classmethod
    def _names(cls, outcomes: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
        names = [o.name for o in outcomes]
        if len({LIVE, *names}) != len(names) + 1:
            raise ValueError(f"two outcomes have one name, or one is named {LIVE!r}")
        return outcomes

    @model_validator(mode="after")
    def _persons_start(self) -> Self:
        named = next((o for o in self.outcome if o.name == self.by_person), None)
        if self.by_person is not None and (named is None or named.recording is None or named.recording.events is None):
            raise ValueError(f"by_person names {self.by_person!r}, want a start on record that has events")
        return self

    def outcome_of(self, config: ServingConfig) -> Outcome | None:
        """Return the first outcome on record for a configuration, or None where there is none."""
        return next((o for o in self.outcome if not self.differs(o, config)), None)

    def differs(self, outcome: Outcome, config: ServingConfig) -> tuple[str, ...]:
        """Return the facts in which a configuration is not the recorded one; empty where the record speaks for it."""
        ours, recorded = self._facts(config), self._facts(self.live.config)
        keys = dict.fromkeys([*recorded, *ours, *outcome.when])
        return tuple(key for key in keys if not self._agrees(outcome, key, ours.get(key), recorded.get(key)))

    def nearest(self, config: ServingConfig) -> tuple[str, ...]:
        """Return what separates a configuration from the nearest one on record."""
        return min((self.differs(o, config) for o in self.outcome), key=len, default=())

    def is_live(self, config: ServingConfig) -> bool:
        """Whether a configuration is the one that stood when the rehearsal opened."""
        return self._facts(config) == self._facts(self.live.config)

    def start(self, name: str | None) -> "Outcome | LiveStart | None":
        """Return the start of that name, which may be the live one; None where the record has none."""
        if name == LIVE:
            return self.live
        return next((o for o in self.outcome if o.name == name), None)

    def lines(self, recording: Recording | None) -> tuple[LogLine, ...]:
        """Return the log of a recorded start, at the times of the record."""
        if recording is None or recording.log is None:
            return ()
        return timed_lines(_text(self.folder / recording.log), since=recording.began_at)

    def events(self, recording: Recording | None) -> tuple[dict[str, Any], ...]:
        """Return the LogEntry objects that a sink let through, at the times of the record."""
        if recording is None or recording.events is None:
            return ()
        lines = _text(self.folder / recording.events).splitlines()
        return tuple(json.loads(line) for line in lines if line.strip())  # not strict: a recording of ours

    def _facts(self, config: ServingConfig) -> dict[str, str]:
        return {key: value for key, value in facts(config).items() if self.same_as_absent.get(key) != value}

    def _agrees(self, outcome: Outcome, key: str, ours: str | None, recorded: str | None) -> bool:
        if key in outcome.when:
            return holds(outcome.when[key], ours)
        return ours == recorded or any(fnmatchcase(key, pattern) for pattern in self.free)


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file.

    Raises:
        InputRejected: It cannot be read, is no TOML or no scenario; all mistakes at once.
    """
    try:
        data: Mapping[str, Any] = tomllib.loads(_text(path))
        return Scenario.model_validate({**data, "folder": path.parent})
    except tomllib.TOMLDecodeError as error:
        raise _rejected(path, f"not TOML: {error}") from error
    except ValidationError as error:
        raise _rejected(path, "; ".join(mistakes_of(error))) from error


def moment(entry: Mapping[str, Any]) -> datetime:
    """Return the time of a recorded LogEntry, or of a row of Azure Monitor."""
    return datetime.fromisoformat(str(entry.get("timestamp") or entry["TimeGenerated"]))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise _rejected(path, str(error)) from error


def _rejected(path: Path, why: str) -> InputRejected:
    return InputRejected(
        f"scenario {path.name!r} was not read", why=why, hint="correct the file; examples/ holds others"
    )
