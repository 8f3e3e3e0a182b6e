"""A watched service as people and programs see it: how it stands, why, what it runs, what differs, what happened."""

from typing import Any, Final

from agent.core.change.config_drift import Drift, ServiceRecord, State, unpinned
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.service.services import Service
from agent.core.service.serving import Live
from agent.core.text.safe_text import terminal
from agent.core.value import Value
from agent.presentation.drift_text import as_declared, change_text, drift_line

SHOWN_INCIDENTS = 5


class ServiceView(Value):
    """What is known of a service now.

    Attributes:
        live: As the platform describes it; None where it was not asked or does not have it.
        not_described: Why ``live`` is None.
        deployed: Whether the platform has it, as far as it was asked.
        state: Every setting by its path, without secrets: of ``live``, else as it was seen last.
        drift: What differs from what was declared or approved.
        incidents: The newest first.
        usd_per_h: Of one instance; None where the price is unknown.
    """

    service: Service
    live: Live | None = None
    not_described: str = ""
    deployed: bool = True
    record: ServiceRecord | None = None
    state: State
    drift: tuple[Drift, ...] = ()
    incidents: tuple[Incident, ...] = ()
    usd_per_h: float | None = None

    @property
    def condition(self) -> str:
        """How it stands: ready, starting, not ready, stopping, stopped, not deployed, or unknown."""
        live = self.live
        if live is None:
            return "unknown" if self.deployed else "not deployed"
        if live.config.max_instances == 0:
            return "stopping" if live.reconciling else "stopped"
        return {True: "ready", False: "not ready", None: "starting"}[live.ready]

    @property
    def why(self) -> str:
        """Why it is not ready, in the platform's words; untrusted text."""
        if self.live is None:
            return self.not_described
        return "" if self.live.ready else self.live.message

    @property
    def flags(self) -> dict[str, str]:
        """The server's flags with their values; an empty value is a switch."""
        flags = {p.removeprefix("flag --"): v or "" for p, v in self.state.items() if p.startswith("flag --")}
        return {name: value for name, value in flags.items() if name != "m"}  # of `python -m`

    @property
    def unpinned(self) -> str:
        """Why its image may become another one by itself, or nothing."""
        return unpinned(self.state.get("image") or "")

    @property
    def needs(self) -> dict[str, float]:
        """What its owner cannot do without, as far as it was said."""
        return self.service.needs.model_dump(exclude_none=True)

    @property
    def baseline(self) -> str:
        """What it does not differ from, for people; nothing to differ from is said too."""
        if self.service.declared is not None:
            return "as declared"
        if self.record is not None and self.record.approved is not None:
            return "as the last approved change left it"
        return "nothing was declared, and no approved change was made"

    @property
    def last_change(self) -> str:
        """What was changed last and by whom, or nothing."""
        changes = self.record.changes if self.record is not None else ()
        return f"{change_text(changes[-1])}, {changes[-1].at:%Y-%m-%d %H:%M} UTC" if changes else ""

    @property
    def standing_text(self) -> str:
        """What of its incidents and requests is not over, such as ``1 open incident, 1 escalated``; else empty."""
        standing = [i for i in self.incidents if not i.ended]
        requests = sum(i.request is not None for i in standing)
        escalated = sum(i.phase is Phase.ESCALATED and i.ended for i in self.incidents)
        troubles = len(standing) - requests
        said = [f"{troubles} open incident{'s' * (troubles > 1)}"] if troubles else []
        said += [f"{escalated} escalated"] if escalated else []
        said += [f"{requests} open change request{'s' * (requests > 1)}"] if requests else []
        return ", ".join(said)

    @property
    def way_back(self) -> tuple[str, ...]:
        """The commands that make it as it should be; nothing is done unasked."""
        return as_declared(self.service.name, self.drift, self.state) if self.drift else ()


def service_row(view: ServiceView) -> dict[str, Any]:
    """Return a service as one row for programs."""
    live, changes = view.live, view.record.changes if view.record is not None else ()
    return {
        "name": view.service.name,
        "platform": view.service.platform,
        "condition": view.condition,
        "why": view.why,
        "revision": live.latest_created_revision if live is not None else None,
        "url": (live.url or None) if live is not None else None,
        "model": view.service.model,
        "accelerator": view.service.accelerator,
        "image": view.state.get("image"),
        "unpinned": view.unpinned or None,
        "flags": view.flags,
        "min_instances": live.config.min_instances if live is not None else None,
        "max_instances": live.config.max_instances if live is not None else None,
        "needs": view.needs,
        "usd_per_h": view.usd_per_h,
        "drift": [drift_row(row) for row in view.drift],
        "make_as_declared": list(view.way_back),
        "changes": [change.model_dump(mode="json") for change in changes[-SHOWN_INCIDENTS:]],
        "incidents": [
            {"id": i.id, "phase": i.phase.value, "class": i.cause, "opened_at": i.opened_at.isoformat()}
            for i in view.incidents
        ],
    }


def drift_row(row: Drift) -> dict[str, Any]:
    """Return one setting that differs, for programs."""
    return {"setting": row.path, "wanted": row.wanted, "live": row.live, "against": row.against}


def service_headline(view: ServiceView) -> str:
    """Return one line: name, condition, revision, cost, drift, open incidents."""
    live = view.live
    parts = [view.service.name, view.condition]
    parts += [live.latest_created_revision] if live is not None and live.latest_created_revision else []
    parts += [f"{view.usd_per_h:.2f} USD/h"] if view.usd_per_h is not None else []
    parts += [f"drift in {len(view.drift)} setting{'s' if len(view.drift) > 1 else ''}"] if view.drift else []
    parts += [view.standing_text] if view.standing_text else []
    return "  ".join(map(terminal, parts))


SERVICE_COLUMNS: Final = ("SERVICE", "CONDITION", "REVISION", "USD/H", "DRIFT", "INCIDENTS")


def service_cells(view: ServiceView) -> tuple[str, ...]:
    """Return a service as a row of the table with these headings."""
    live = view.live
    drift = len(view.drift)
    return (
        view.service.name,
        view.condition,
        (live.latest_created_revision if live is not None else "") or "-",
        f"{view.usd_per_h:.2f}" if view.usd_per_h is not None else "-",
        f"{drift} setting{'s' if drift > 1 else ''}" if drift else "-",
        view.standing_text or "-",
    )


def service_lines(view: ServiceView) -> tuple[str, ...]:
    """Return a service for a terminal; all outside text is made harmless."""
    service, live = view.service, view.live
    said = [service_headline(view), f"  platform   {service.platform}"]
    said += [f"  why        {terminal(view.why)}"] if view.why else []
    said += [f"  url        {terminal(live.url)}"] if live is not None and live.url else []
    count = f"{service.accelerator_count} x {service.accelerator}"
    said.append(f"  model      {terminal(service.model)} on {count}")
    image = view.state.get("image")
    said += [f"  image      {terminal(image)}"] if image else []
    said += [f"  warning    {terminal(view.unpinned)}"] if view.unpinned else []
    said += [f"  flag       {terminal(f'--{name} {value}'.rstrip())}" for name, value in view.flags.items()]
    if live is not None:
        most = "the platform's default" if live.config.max_instances is None else live.config.max_instances
        said.append(f"  instances  {live.config.min_instances} to {most}")
    needs = ", ".join(f"{name} {value:g}" for name, value in view.needs.items())
    said += [f"  needs      {needs}"] if needs else []
    price = "unknown" if view.usd_per_h is None else f"{view.usd_per_h:.2f} USD per hour of one instance"
    said.append(f"  cost       {price}")
    said += [f"  changed    {terminal(view.last_change)}"] if view.last_change else []
    said += drift_lines(view)
    said += [
        f"  incident   {i.id}  {i.opened_at:%Y-%m-%d %H:%M}  {terminal(i.cause)}  {i.phase}" for i in view.incidents
    ]
    return tuple(said)


def drift_lines(view: ServiceView) -> list[str]:
    """Return what differs and the way back, one line each."""
    return [
        *(f"  drift      {terminal(drift_line(row))}" for row in view.drift),
        *(f"  way back   {terminal(command)}" for command in view.way_back),
    ]
