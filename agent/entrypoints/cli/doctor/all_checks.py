"""The doctor: settings and files of this machine, other services, and Google Cloud where the settings name it."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from agent.app.catalogues import project_of
from agent.app.stores import open_stores
from agent.core.service.services import Services
from agent.entrypoints.cli.doctor import local_machine
from agent.entrypoints.cli.doctor.cloud import Base, Cloud, Token, google
from agent.entrypoints.cli.doctor.external_services import (
    SLACK,
    Clocks,
    decide_function,
    model_endpoints,
    notify_targets,
    pagerduty,
    slack,
)
from agent.entrypoints.cli.doctor.finding import Finding, bad, good, mark_from_operator, off, run_check, unknown
from agent.entrypoints.cli.doctor.platforms import cluster_rights, container_apps, ec2_units, tpu_nodes
from agent.errors import DependencyFailed
from agent.settings import Settings


def findings(
    environ: Mapping[str, str], *, now: datetime, token: Token, slack_base: str = SLACK, base: Base = google
) -> Iterator[Finding]:
    """Look at everything that the settings name.

    Args:
        environ: The environment.
        now: This machine's time, UTC.
        token: Returns an access token of the operator; called only where a cloud is named.
        slack_base: Address of Slack's interface.
        base: Address of Google's interfaces by name.
    """
    yield local_machine.installation()
    settings, first = local_machine.read_what_can_be(environ)
    yield from mark_from_operator(first)
    misnamed = any(finding.check == "setting:SERVICES" for finding in first)
    services, about = (None, []) if misnamed else local_machine.services_file(settings)
    yield from mark_from_operator(about)
    yield from mark_from_operator(local_machine.policy_file(settings))
    yield from mark_from_operator(local_machine.state_folder(settings))
    yield from mark_from_operator(local_machine.receipt_key(settings))
    yield from mark_from_operator(local_machine.channels(settings))
    yield from mark_from_operator(local_machine.kill_switch(settings))
    yield from mark_from_operator(local_machine.traces(settings))
    yield from mark_from_operator(_platform(settings))
    yield from run_check("kubernetes", lambda: cluster_rights(settings, services))
    yield from run_check("container_apps", lambda: container_apps(settings, services))
    yield from run_check("tpu", lambda: tpu_nodes(settings, services, now))
    yield from run_check("ec2", lambda: ec2_units(settings, services))
    yield from run_check("queue", lambda: _queue(settings))
    clocks = Clocks(now)
    yield from run_check("model", lambda: model_endpoints(settings, clocks))
    yield from run_check("slack", lambda: slack(settings, clocks, base=slack_base))
    yield from run_check("pagerduty", lambda: pagerduty(settings, clocks))
    yield from run_check("notify", lambda: notify_targets(settings))
    yield from run_check("decide", lambda: decide_function(settings))
    yield from _cloud(settings, services, token, clocks, now=now, base=base)
    yield from clocks.findings()


def _cloud(
    settings: Settings, services: Services | None, token: Token, clocks: Clocks, *, now: datetime, base: Base
) -> Iterator[Finding]:
    project = project_of(settings)
    if project is None:
        yield off("cloud", "no project is named: everything runs in this process")
        return
    try:
        token()
    except DependencyFailed as error:
        yield unknown("cloud", error.why, error.hint)
        return
    cloud = Cloud(project, token, clocks, now=now, base=base)
    yield from cloud.findings(services if services is not None else Services(services=()))


def _queue(settings: Settings) -> Iterator[Finding]:
    """Look at what was given up in the embedded queue; nothing is made where nothing is."""
    if not settings.embedded:
        return
    if not settings.state.is_dir():
        yield good("dead-letters", "none: nothing was ever received")
        return
    rows = open_stores(settings, with_control=False).quarantine.rows()
    if rows:
        newest = rows[0]
        says = f"{len(rows)} messages were given up, the newest because {newest.get('reason', '?')[:80]!r}"
        yield bad("dead-letters", says, "read them: docs/operate.md, 'Dead letters'")
    else:
        yield good("dead-letters", "none")


def _platform(settings: Settings) -> Iterator[Finding]:
    kind, _, rest = settings.platform.partition(":")
    if kind == "rehearsal" and (Path(rest) / "services.toml").is_file():
        says = f"a rehearsal of {Path(rest).name}: no real service is watched or changed"
        yield off("platform", f"{says}; PLATFORM and SERVICES name yours")
    elif kind == "rehearsal":
        yield bad(
            "platform", f"{rest!r} is no rehearsal", "name a folder of examples/ with PLATFORM=rehearsal:<folder>"
        )
    else:
        yield good("platform", settings.platform)
