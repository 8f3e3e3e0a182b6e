"""Configuration drift: what a service runs, against what was declared for it or approved last.

Not to be confused with :mod:`agent.core.change.drift`, which asks whether a service still stands as one change of ours
left it. This one is only ever shown.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, Literal

from pydantic import AwareDatetime

from agent.core.plan.action import Difference, flat
from agent.core.service.container_args import flag_map
from agent.core.service.declared import Declared
from agent.core.service.services import Service
from agent.core.service.serving import Live, ServingConfig
from agent.core.value import Value

KEPT_CHANGES: Final = 20
BETWEEN_LOOKS: Final = timedelta(seconds=90)
CLOCKS_APART: Final = timedelta(seconds=5)
_UNPINNED: Final = frozenset({"", "latest", "nightly"})
_NOT_DECLARED: Final = frozenset({"flag --host", "flag --model", "flag --port", "flag --served-model-name"})
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")

State = dict[str, str | None]
Rows = tuple[Difference, ...]


class Drift(Value):
    """One setting that is not as it should be; None means that it is absent.

    Attributes:
        against: ``declared`` in services.toml, or ``approved``: as our last approved change left it.
    """

    path: str
    wanted: str | None
    live: str | None
    against: Literal["declared", "approved"]


class ConfigChange(Value):
    """A change of a service's configuration that was seen from outside.

    Attributes:
        at: When it was made, as the platform says, or when it was seen.
        by: Who made it; empty where nobody knows.
        ours: Whether it carries the stamp of an approved change.
    """

    at: AwareDatetime
    by: str = ""
    ours: bool = False
    rows: tuple[Difference, ...]


class AuditedChange(Value):
    """One call that changed a service, as the platform's audit log has it."""

    at: AwareDatetime
    by: str


class ServiceRecord(Value):
    """What was seen of a service's configuration, without secrets.

    Attributes:
        state: Every setting by its path.
        approved: The same as our last approved change left it; None where there was none.
        changes: The newest last.
        drift: What is told of already.
        drift_since: When the present drift was first seen.
        changed_by: Who changed the service last.
    """

    service: str
    revision: str | None = None
    generation: int = 0
    state: State
    approved: State | None = None
    changes: tuple[ConfigChange, ...] = ()
    drift: tuple[Drift, ...] = ()
    drift_since: AwareDatetime | None = None
    changed_by: str = ""
    seen_at: AwareDatetime


def record_of(
    before: ServiceRecord | None,
    service: Service,
    live: Live,
    *,
    redact: Callable[[str], str],
    now: datetime,
    planned: Callable[[Rows], bool] = lambda _: False,
) -> ServiceRecord:
    """Return what is known of a service after it was described once more; equal to ``before`` where nothing changed.

    Args:
        before: What was known.
        service: With what was declared.
        live: As it is now.
        redact: Takes secrets out of a text.
        now: The time.
        planned: Whether an approved plan of ours made exactly these changes; asked where no new revision bears our
            stamp, as after a stop or a change of the scaling alone.
    """
    state = state_of(live, redact)
    changed = before is None or before.state != state
    ours = changed and _ours(before, state, live, planned)
    approved = state if ours else before.approved if before is not None else None
    rows = drift_of(service, state, approved, redact=redact)
    same = before is not None and before.drift == rows
    if before is not None and same and not changed:
        return before
    return ServiceRecord(
        service=service.name,
        revision=live.latest_created_revision,
        generation=live.generation,
        state=state,
        approved=approved,
        changes=_changes(before, state, live, ours=ours, now=now),
        drift=rows,
        drift_since=(before.drift_since if before is not None and before.drift else now) if rows else None,
        changed_by=live.changed_by,
        seen_at=now,
    )


def with_authors(changes: tuple[ConfigChange, ...], audited: tuple[AuditedChange, ...]) -> tuple[ConfigChange, ...]:
    """Return the changes with everybody whom the audit log names for each; what it does not name stays as it was.

    The agent looks once a minute, so several calls may stand behind one change, of which the platform names the last.

    Args:
        changes: As they were seen.
        audited: The calls, oldest first.
    """
    return tuple(_authored(change, audited) for change in changes)


def _authored(change: ConfigChange, audited: tuple[AuditedChange, ...]) -> ConfigChange:
    since, until = change.at - BETWEEN_LOOKS, change.at + CLOCKS_APART
    by = dict.fromkeys(call.by for call in audited if since < call.at <= until)
    return change if change.ours or not by else change.with_(by=" and ".join(by))


def state_of(live: Live, redact: Callable[[str], str]) -> State:
    """Return every setting of a service by its path, without secrets."""
    return _clean(flat(live.config), redact)


def _ours(before: ServiceRecord | None, state: State, live: Live, planned: Callable[[Rows], bool]) -> bool:
    """Whether an approved change of ours led to this state: a new revision with our stamp, or a planned change.

    A revision of ours that serves on says nothing of who changed what stands beside it, such as the scaling.
    """
    newest = live.latest_created_revision
    if newest in live.stamps and (before is None or before.revision != newest):
        return True
    return before is not None and planned(_rows(before.state, state))


def _changes(
    before: ServiceRecord | None, state: State, live: Live, *, ours: bool, now: datetime
) -> tuple[ConfigChange, ...]:
    if before is None or before.state == state:
        return before.changes if before is not None else ()
    made = live.changed_at if live.changed_at is not None and before.seen_at <= live.changed_at <= now else now
    change = ConfigChange(at=made, by="" if ours else live.changed_by, ours=ours, rows=_rows(before.state, state))
    return (*before.changes, change)[-KEPT_CHANGES:]


def _rows(old: State, new: State) -> Rows:
    paths = [*old, *(p for p in new if p not in old)]
    return tuple(
        Difference(path=p, before=old.get(p), after=new.get(p))
        for p in paths
        if (p in old, old.get(p)) != (p in new, new.get(p))
    )


def drift_of(
    service: Service, state: State, approved: State | None, *, redact: Callable[[str], str] = str
) -> tuple[Drift, ...]:
    """Return what differs from the declared state; where nothing was declared, from the last approved one.

    Args:
        service: The service as services.toml names it.
        state: Every setting that runs, by its path.
        approved: As our last approved change left it; None where there was none.
        redact: Takes secrets out of what was declared, as it took them out of ``state``.
    """
    wanted = {**_accelerator(service, state), **(_wanted(service.declared) if service.declared is not None else {})}
    rows = _declared_rows(service, state, _clean(wanted, redact))
    named = {row.path for row in rows}
    if service.declared is None and approved is not None:
        changed = _rows(approved, state)
        rows += [
            Drift(path=d.path, wanted=d.before, live=d.after, against="approved")
            for d in changed
            if d.path not in named
        ]
    return tuple(rows)


def _declared_rows(service: Service, state: State, wanted: State) -> list[Drift]:
    rows = [
        Drift(path=path, wanted=value, live=state.get(path), against="declared")
        for path, value in wanted.items()
        if path not in state or _plain(state[path]) != _plain(value)
    ]
    if service.declared is not None and service.declared.flags is not None:
        extra = (p for p in state if p.startswith("flag ") and p not in wanted and p not in _NOT_DECLARED)
        rows += [Drift(path=path, wanted=None, live=state[path], against="declared") for path in extra]
    return rows


def _accelerator(service: Service, state: State) -> State:
    """Every service declares its accelerator; a platform that does not tell it is not compared."""
    if "accelerator" not in state:
        return {}
    return {"accelerator": service.accelerator, "accelerator_count": str(service.accelerator_count)}


def _wanted(declared: Declared) -> State:
    given = declared.model_dump(
        include={"image", "cpu", "memory_mib", "min_instances", "max_instances", "concurrency"}, exclude_none=True
    )
    wanted: State = {name: str(value) for name, value in given.items()}
    wanted |= {f"flag --{name}": value for name, value in flag_map(declared.flag_words or ()).items()}
    wanted |= {f"env {name}": value for name, value in declared.env.items()}
    if declared.model_revision is not None:
        wanted["flag --revision"] = declared.model_revision
    probes = ServingConfig(startup_probe=declared.startup_probe, liveness_probe=declared.liveness_probe, image="x")
    return wanted | {path: value for path, value in flat(probes).items() if "_probe " in path}


def _plain(value: str | None) -> str | float | None:
    """Numbers are compared as numbers: 0.9 and 0.90 are one value."""
    try:
        return float(value) if value is not None else None
    except ValueError:
        return value


def _clean(state: State, redact: Callable[[str], str]) -> State:
    """Take secrets out; a variable is redacted with its name, by which a secret is known."""
    return {path: _without_secret(path, value, redact) for path, value in state.items()}


def _without_secret(path: str, value: str | None, redact: Callable[[str], str]) -> str | None:
    if not value:
        return value
    name = path.removeprefix("env ").removeprefix("flag --")
    lead = f"{name}="
    said = redact(f"{lead}{value}")
    return said[len(lead) :] if said.startswith(lead) else redact(value)


def unpinned(image: str) -> str:
    """Return why an image may become another one without any change here, or nothing."""
    if not image or _DIGEST.search(image):
        return ""
    tag = image.rpartition("/")[2].partition(":")[2]
    if tag.partition("-")[0] not in _UNPINNED and not tag.endswith(("nightly", "latest")):
        return ""
    named = f"the tag :{tag} moves" if tag else "no tag is named, which is :latest"
    return f"the image {image} is not pinned: {named}"
