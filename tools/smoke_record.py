"""Follows the incident of a live smoke test to its end and writes it as a folder that can become a test.

`deploy.sh smoke --record DIR` calls this. It reads incidents from `decide`, the service from its platform, and its log
from Cloud Logging; it changes nothing but the folder.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from agent.adapters.clock import SystemClock
from agent.app.catalogues import failures, read_services
from agent.catalogue.load_bundled import load_healthy
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.intake.signal import LIVE
from agent.core.intake.sink_filter import sink_filters
from agent.core.service.services import Service, Services
from agent.core.service.serving import Live
from agent.core.text.safe_text import terminal
from agent.errors import DISTRIBUTION, DependencyFailed, InputRejected, SreError
from agent.ports.store import Query
from tools.live_record import LiveRecord, changed_at, instance_of, write_record
from tools.stand_in_names import StandInNames

POLL_S = 10.0
MOST = 20_000  # log entries of one kind; a start prints some hundreds
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class LiveAccount:
    """What is read of a live account.

    Attributes:
        incidents: Incidents of the live run, newest first.
        timeline: The timeline of one.
        describe: The service as its platform shows it.
        entries: Log entries by a filter, from a time on, oldest first.
    """

    incidents: Callable[[Query], Sequence[Incident]]
    timeline: Callable[[str], Sequence[Any]]
    describe: Callable[[], Live]
    entries: Callable[[str, datetime], Iterable[dict[str, Any]]]


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """How long is waited, by which clock.

    Attributes:
        limit_s: For the end of the incident.
        now: The time, UTC.
    """

    limit_s: float
    now: Callable[[], datetime]
    sleep: Callable[[float], None]


def record_incident(account: LiveAccount, service: Service, *, since: datetime, wait: Waiting, say: Say) -> LiveRecord:
    """Follow the first incident of a service that is opened from a time on, until its end or the end of the wait.

    Raises:
        DependencyFailed: No incident was opened, or what it is made of could not be read.
    """
    until = wait.now() + timedelta(seconds=wait.limit_s)
    seen: Incident | None = None
    before: Live | None = None
    late = False
    while True:
        try:
            found = _opened(account, service.name, since)
            if found is not None and (seen is None or found.phase is not seen.phase):
                say(_progress(found))
            seen = found or seen
            if seen is not None and before is None:
                before, late = account.describe(), changed_at(seen) is not None
        except DependencyFailed as error:  # it is asked again; what was seen stays
            say(f"  {error.cause}; asked again")
        if (seen is not None and seen.ended) or wait.now() >= until:
            break
        wait.sleep(POLL_S)
    if seen is None or before is None:
        raise DependencyFailed(
            "nothing was recorded",
            why=f"no incident of {service.name!r} was opened within {wait.limit_s:g} s",
            hint="run: sre-agent doctor; docs/operate.md, 'The agent receives no events'",
        )
    return _read(account, service, seen, before, since=since, late=late, now=wait.now())


def _opened(account: LiveAccount, service: str, since: datetime) -> Incident | None:
    """The first incident from then on; a recurrence later is another one."""
    found = [i for i in account.incidents(Query(run=LIVE, service=service)) if i.opened_at >= since]
    found = [i for i in found if i.request is None]
    return min(found, key=lambda i: i.opened_at, default=None)


def _progress(incident: Incident) -> str:
    said = f"  {incident.id}: {incident.phase.value}, {incident.cause}"
    if incident.phase is Phase.ASKED and incident.plan is not None:
        said += f"; a person must answer: in the console, or sre-agent approve {incident.plan.id}"
    return said


def _read(
    account: LiveAccount,
    service: Service,
    incident: Incident,
    before: Live,
    *,
    since: datetime,
    late: bool,
    now: datetime,
) -> LiveRecord:
    """Read what the incident was made of: what came after its change tells of another start."""
    changed = changed_at(incident) or now
    events = [e for query in _sinks(service) for e in account.entries(query, since) if _at(e) < changed]
    lines = [e for e in account.entries(_lines_of(incident), since) if _at(e) < changed]
    first = next((instance_of(e) for e in lines), None)
    try:
        after: Live | None = account.describe()
    except SreError:
        after = None
    return LiveRecord(
        service=service,
        incident=incident,
        timeline=tuple(account.timeline(incident.id)),
        before=before,
        after=after,
        events=tuple(sorted(events, key=_at)),
        lines=tuple(e for e in lines if instance_of(e) == first),
        late=late,
        agent=_agent(),
        taken_at=now,
    )


def _sinks(service: Service) -> list[str]:
    filters = sink_filters(Services(services=(service,)), failures().signatures, load_healthy())
    return [f'resource.labels.service_name="{service.name}"\nAND (\n{query})' for query in filters.values()]


def _lines_of(incident: Incident) -> str:
    from agent.adapters.logs.cloud_logging import cloud_run_revision

    return "\nAND ".join(cloud_run_revision(incident.service, incident.revision, None))


def _at(entry: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(str(entry["timestamp"]))


def _agent() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "not known"


def open_account(service: Service) -> LiveAccount:
    """Return the live account of the settings; makes no call.

    Raises:
        SettingsRejected: The settings do not lead to one.
    """
    from agent.adapters.logs.cloud_logging import CloudLogs
    from agent.app.runtime_environment import open_environment
    from agent.entrypoints.operator_client.local import open_operator_client
    from agent.settings import read_settings

    settings = read_settings()
    platform = open_environment(settings, read_services(settings), SystemClock()).platform_of(service.name)
    if platform is None:
        raise InputRejected(
            f"{service.name!r} was not read",
            why=f"PLATFORM is {settings.platform!r}, which does not hold it",
            hint="name the project of the service in PLATFORM",
        )
    client = open_operator_client()
    logs = CloudLogs(service.project, emulator=settings.logging_emulator)
    return LiveAccount(
        incidents=client.incidents,
        timeline=client.timeline,
        describe=lambda: platform.describe(service.name),
        entries=lambda query, since: logs.entries(f'timestamp>="{since.isoformat()}"\nAND ({query})', limit=MOST),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Check that everything can be read, or record.

    Returns:
        0; 1 where the folder is written and the incident has not ended; 2 or 3 as the command line of the agent does.
    """
    args = _parser().parse_args(argv)
    try:
        return _run(args)
    except SreError as error:
        print(terminal(str(error)), file=sys.stderr)
        return error.exit_code


def _run(args: argparse.Namespace) -> int:
    from agent.settings import read_settings

    service = read_services(read_settings()).service(args.service)
    if service.platform != "cloud_run":
        raise InputRejected(
            f"{args.service!r} was not recorded",
            why=f"it runs on {service.platform}, and only Cloud Run is recorded by this command",
            hint="name a service on Cloud Run",
        )
    if args.out.exists():
        raise InputRejected(f"{str(args.out)!r} was not written", why="it is there already", hint="name another folder")
    account = open_account(service)
    if args.check:
        account.incidents(Query(service=service.name, limit=1))
        account.describe()
        next(
            iter(account.entries('resource.type="cloud_run_revision"', SystemClock().now() - timedelta(minutes=5))),
            None,
        )
        print("  incidents, service and log can be read")
        return 0
    wait = Waiting(limit_s=args.wait, now=SystemClock().now, sleep=time.sleep)
    since = args.since or wait.now()
    record = record_incident(
        account, service, since=since, wait=wait, say=lambda line: print(terminal(line), flush=True)
    )
    return keep(record, args.out, projects=args.project, numbers=args.number, accounts=args.account)


def keep(
    record: LiveRecord, folder: Path, *, projects: Sequence[str], numbers: Sequence[str], accounts: Sequence[str]
) -> int:
    """Write the record with fixed names, and say what is in it and what to look at.

    Raises:
        SreError: See :func:`tools.live_record.write_record`.
    """
    names = StandInNames(
        projects=(*projects, *filter(None, [record.service.project])),
        numbers=numbers,
        accounts=accounts,
        buckets=record.buckets,
        people=record.people,
    )
    files = write_record(record, folder, names)
    print(f"The record is in {folder}: {', '.join(files)}.")
    if not record.incident.ended:
        print(f"The incident had not ended: it stood at {record.incident.phase.value}. PROVENANCE.md says so.")
    print("Secrets, project, accounts, people, buckets, hosts and addresses are replaced, and were looked for again.")
    print("Before you share it, read it: the names of the service and its model, flags, environment, mount paths, your")
    print("comments and reasons, and every line of instance.log stand there as they are.")
    print(f"See it again: sre-agent replay {folder}")
    return 0 if record.incident.ended else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.smoke_record", description=__doc__)
    parser.add_argument("--service", required=True, metavar="NAME", help="whose incident is recorded")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="the folder to write; not there yet")
    parser.add_argument("--since", type=_moment, default=None, metavar="TIME", help="when it was broken (default now)")
    parser.add_argument("--wait", type=float, default=3600.0, metavar="S", help="seconds to wait (default 3600)")
    for name in ("project", "number", "account"):
        parser.add_argument(f"--{name}", action="append", default=[], help="is replaced; may be given several times")
    parser.add_argument("--check", action="store_true", help="only look whether everything can be read")
    return parser


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


if __name__ == "__main__":
    sys.exit(main())
