"""EC2 as a place: the units of services.toml, each on its instance in its region."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from agent.adapters.aws.client import CALLS, READ_S, Aws, Call, open_session
from agent.adapters.aws.errors import code_of
from agent.adapters.clock import SystemClock
from agent.adapters.logs.cloudwatch import stream_entries, stream_of, system_log
from agent.adapters.logs.journal import Entry, Journal, JournalLogs
from agent.adapters.platform.ec2.command import InstanceCommands
from agent.adapters.platform.ec2.describe import Seen, message_of
from agent.adapters.platform.ec2.measure import Meter
from agent.adapters.platform.ec2.platform import Ec2Platform
from agent.adapters.platform.ec2.power import check_stop
from agent.adapters.platform.ec2.target import CALLED_TAG, EFFECT_TAG, FAILED_TAG, REVISION_TAG, Instance, UnitTarget
from agent.core.service.services import Services
from agent.errors import DependencyFailed, PolicyRefused, SettingsRejected, SreError
from agent.ports.clock import Clock
from agent.settings import Settings

MOST_PAGES = 40
CHECKS_GOOD = frozenset({"ok", "not-applicable", "initializing"})


class Ec2(NamedTuple):
    """What serves the units of one account."""

    platform: Ec2Platform
    logs: JournalLogs
    names: frozenset[str]
    aws: Aws


def unit_targets(settings: Settings, services: Services) -> dict[str, UnitTarget]:
    """Return the units of the watched services.

    Raises:
        SettingsRejected: There is none; an empty selection is not all of them.
    """
    from agent.catalogue.load_fit import load_fit_catalogue

    known = tuple(sorted({facts.name for facts in load_fit_catalogue().accelerators.values()}))
    found = {
        s.name: UnitTarget.of(s, known) for s in services.services if s.platform == "ec2" and s.instance is not None
    }
    if not found:
        raise SettingsRejected(
            f"PLATFORM {settings.platform!r} has nothing to work on",
            why="services.toml watches no ec2 service with an instance",
            hint="add to the service: platform = 'ec2', location = 'REGION', instance = 'i-...', unit = 'vllm.service' "
            "(or container = 'NAME')",
        )
    return found


def open_ec2(
    settings: Settings,
    services: Services,
    clock: Clock | None = None,
    *,
    session: Callable[[], Any] | None = None,
    commands: Callable[[Aws], InstanceCommands] | None = None,
) -> Ec2:
    """Return platform and logs of ``ec2[:PROFILE]``.

    Args:
        settings: The installation.
        services: What is watched.
        clock: When something was measured; this machine's when None.
        session: Makes the SDK's session; of the profile when None.
        commands: Runs the script on instances; by Systems Manager, in the usual folders, when None.

    Raises:
        SettingsRejected: No unit is watched.
    """
    targets, clock = unit_targets(settings, services), clock or SystemClock()
    aws = Aws(session or partial(open_session, settings.platform.partition(":")[2] or None))
    run = commands(aws) if commands is not None else InstanceCommands(aws, now=clock.now)

    def meter(seen: Seen) -> Meter:
        return Meter(run, seen, clock)

    platform = Ec2Platform(targets, aws, run, meter)
    logs = JournalLogs(lambda service, until, lines: _log(platform, run, aws, service, until=until, lines=lines))
    return Ec2(platform=platform, logs=logs, names=frozenset(targets), aws=aws)


def unit_says(opened: Ec2, service: str) -> str:
    """Return how a unit stands, read from its instance just now; errors as ``describe``."""
    seen = opened.platform.look(service)
    ready = {True: "it serves", False: f"it does not serve: {message_of(seen)}", None: "it is starting"}[seen.ready]
    return f"instance {seen.instance.id} is {seen.instance.state}, {seen.target.name}: {ready}"


def failed_checks(opened: Ec2, service: str) -> str:
    """Return which of EC2's status checks the instance fails, and what EC2 plans for it; empty where all is well."""
    target, instance = opened.platform.target_of(service)
    rows = opened.aws.call(target.region, "describe_instance_status", InstanceIds=[instance.id])["InstanceStatuses"]
    found = []
    for row in rows:
        states = {"instance": row["InstanceStatus"]["Status"], "system": row["SystemStatus"]["Status"]}
        found += [f"{name} status check: {state}" for name, state in states.items() if state not in CHECKS_GOOD]
        found += [f"EC2 plans {event['Code']}: {event.get('Description', '')}" for event in row.get("Events", ())]
    return "; ".join(found)


def log_says(opened: Ec2, service: str) -> str:
    """Return where the log of a service is read; errors as those of CloudWatch."""
    target, instance = opened.platform.target_of(service)
    if not target.log_group:
        return "read on the instance, page by page"
    prefix = instance.id if target.log_stream is None else target.log_stream
    return f"CloudWatch Logs {target.log_group}, {stream_of(opened.aws, target.region, target.log_group, prefix)}"


def why_not_stopped(opened: Ec2, service: str) -> str:
    """Return why a stop of the instance would be refused, empty where it would not."""
    try:
        check_stop(opened.platform.look(service))
    except PolicyRefused as error:
        return error.why
    return ""


def missing_rights(opened: Ec2, service: str) -> tuple[Call, ...]:
    """Return the calls that change an instance and are denied, each asked by a dry run."""
    target, instance = opened.platform.target_of(service)
    found = []
    tags = [{"Key": key, "Value": "rehearsal"} for key in (EFFECT_TAG, REVISION_TAG, CALLED_TAG, FAILED_TAG)]
    asked: dict[str, dict[str, Any]] = {
        "create_tags": {"Resources": [instance.id], "Tags": tags},
        "start_instances": {"InstanceIds": [instance.id]},
        "stop_instances": {"InstanceIds": [instance.id]},
        "modify_instance_attribute": {"InstanceId": instance.id, "InstanceType": {"Value": instance.type}},
    }
    for operation, what in asked.items():
        try:
            opened.aws.change(target.region, operation, within_s=READ_S, DryRun=True, **what)
        except PolicyRefused:
            found.append(CALLS[operation])
        except SreError as error:
            if code_of(error.__cause__) != "DryRunOperation":
                raise
    return tuple(found)


def _log(
    platform: Ec2Platform, run: InstanceCommands, aws: Aws, service: str, *, until: datetime, lines: int
) -> Journal | None:
    """Read where services.toml says: CloudWatch, or the instance; of one that does not answer, EC2's system log.

    Raises:
        DependencyFailed: It was not read.
    """
    try:
        target, instance = platform.target_of(service)
        if target.log_group:
            return _cloudwatch(aws, target, instance, until, lines)
        try:
            return _journal(run, target, instance, until, lines)
        except DependencyFailed:
            kernel = system_log(aws, target.region, instance.id)
            if not kernel:
                raise
            return Journal(instance=instance.id, entries=kernel, reached=False, ended=True)
    except DependencyFailed:
        raise
    except SreError as error:
        raise DependencyFailed(f"the log of {service!r} was not read", why=error.why, hint=error.hint) from error


def _cloudwatch(aws: Aws, target: UnitTarget, instance: Instance, until: datetime, lines: int) -> Journal:
    prefix = instance.id if target.log_stream is None else target.log_stream
    stream = stream_of(aws, target.region, target.log_group, prefix)
    entries, reached = stream_entries(aws, target.region, target.log_group, stream, until=until, lines=lines)
    kernel = system_log(aws, target.region, instance.id) if instance.state != "running" else ()
    ended = instance.state != "running"
    return Journal(instance=instance.id, entries=(*entries, *kernel), reached=reached, ended=ended)


def _journal(
    run: InstanceCommands, target: UnitTarget, instance: Instance, until: datetime, lines: int
) -> Journal | None:
    """Read a unit's journal page by page: an output of Systems Manager holds 24,000 characters."""
    if instance.state != "running":
        return None
    entries: list[Entry] = []
    for _ in range(MOST_PAGES):
        until_s = int(until.timestamp()) + 1
        answer = run.ask(target, instance.id, "journal", until=until_s, lines=lines, skip=len(entries))
        entries += [Entry(at_us=at, start=start, text=text) for at, start, text in answer["rows"]]
        if not answer["rows"] or len(entries) >= answer["total"]:
            break
    complete = len(entries) >= answer["total"]
    return Journal(
        instance=instance.id, entries=tuple(entries), reached=answer["reached"] and complete, ended=answer["ended"]
    )
