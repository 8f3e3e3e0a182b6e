"""EC2 as a place: the units of services.toml, each on its instance in its region."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from agent.adapters.aws.client import CALLS, READ_S, Aws, Call, open_session
from agent.adapters.aws.errors import code_of
from agent.adapters.clock import SystemClock
from agent.adapters.logs.journal import Entry, Journal, JournalLogs
from agent.adapters.platform.ec2.command import InstanceCommands
from agent.adapters.platform.ec2.describe import Seen, message_of
from agent.adapters.platform.ec2.measure import Meter
from agent.adapters.platform.ec2.platform import Ec2Platform
from agent.adapters.platform.ec2.power import check_stop
from agent.adapters.platform.ec2.target import EFFECT_TAG, UnitTarget
from agent.core.service.services import Services
from agent.errors import PolicyRefused, SettingsRejected, SreError
from agent.ports.clock import Clock
from agent.settings import Settings

MOST_PAGES = 40


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
    found = {s.name: UnitTarget.of(s) for s in services.services if s.platform == "ec2" and s.instance is not None}
    if not found:
        raise SettingsRejected(
            f"PLATFORM {settings.platform!r} has nothing to work on",
            why="services.toml watches no ec2 service with an instance",
            hint="add to the service: platform = 'ec2', location = 'REGION', instance = 'i-...', unit = 'vllm.service'",
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
    logs = JournalLogs(partial(_journal, platform, run))
    return Ec2(platform=platform, logs=logs, names=frozenset(targets), aws=aws)


def unit_says(opened: Ec2, service: str) -> str:
    """Return how a unit stands, read from its instance just now; errors as ``describe``."""
    seen = opened.platform.look(service)
    ready = {True: "it serves", False: f"it does not serve: {message_of(seen)}", None: "it is starting"}[seen.ready]
    return f"instance {seen.instance.id} is {seen.instance.state}, {seen.target.unit}: {ready}"


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
    tag = {"Key": EFFECT_TAG, "Value": "rehearsal"}
    asked: dict[str, dict[str, Any]] = {
        "create_tags": {"Resources": [instance.id], "Tags": [tag]},
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


def _journal(platform: Ec2Platform, run: InstanceCommands, service: str, until: datetime, lines: int) -> Journal | None:
    """Read a unit's journal page by page: an output of Systems Manager holds 24,000 characters."""
    target, instance = platform.target_of(service)
    if instance.state != "running":
        return None
    entries: list[Entry] = []
    for _ in range(MOST_PAGES):
        until_s = int(until.timestamp()) + 1
        told = run.ask(target, instance.id, "journal", until=until_s, lines=lines, skip=len(entries))
        entries += [Entry(at_us=at, start=start, text=text) for at, start, text in told["rows"]]
        if not told["rows"] or len(entries) >= told["total"]:
            break
    complete = len(entries) >= told["total"]
    return Journal(
        instance=instance.id, entries=tuple(entries), reached=told["reached"] and complete, ended=told["ended"]
    )
