"""The replay command: recorded events through the whole path, to look at, or for the running service."""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.text.safe_text import terminal
from agent.core.value import short_id
from agent.entrypoints.cli.output import for_programs, without_secrets
from agent.entrypoints.cli.output import message as shown_message
from agent.entrypoints.cli.records import Record
from agent.errors import InputRejected
from agent.presentation.terminal_text import lines

if TYPE_CHECKING:
    from agent.entrypoints.cli.replay_source import Source
    from agent.ports.bus import Bus

OVER = frozenset({Phase.RESOLVED, Phase.SELF_RECOVERED})


USAGE = """examples:
  sre-agent replay gemma4-31b-l4-oom          a recorded incident, by its folder or its bare name
  sre-agent replay examples                   every recorded incident of a folder, one after another
  sre-agent replay server.log                 a plain log, or log entries as JSON
  sre-agent replay "logging:severity>=ERROR" --since 2h
  sre-agent replay incident:rq-0123456789ab   the plan of a change request, for the service as it is now
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Name the arguments of the contract."""
    parser.epilog, parser.formatter_class = USAGE, argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "source", metavar="SOURCE", help="file | folder | glob | example | - | logging:FILTER | incident:ID"
    )
    parser.add_argument("--since", metavar="2h", help="how far back logging:FILTER reads: 30m, 2h, 1d (default 1h)")
    parser.add_argument(
        "--publish", action="store_true", help="send the events to the running service, under a run id of their own"
    )
    parser.add_argument(
        "--live", action="store_true", help="allow the replay to change services after approval; implies --publish"
    )
    parser.add_argument("--notify", action="store_true", help="allow the replay to notify people; implies --publish")
    parser.add_argument("--json", action="store_true", help="print JSON Lines, one incident per line")


def run(args: argparse.Namespace) -> int:
    """Replay a source; a folder of examples is replayed one by one.

    Returns:
        0 when no incident stays open, 1 when one does.

    Raises:
        InputRejected: The source cannot be read, or no record of it is an event: then nobody knows whether all is well.
    """
    from agent.entrypoints.cli.replay_source import open_sources
    from agent.entrypoints.telemetry import configure_log

    configure_log(as_json=False, quiet=True)
    now = datetime.now(UTC)  # noqa: TID251 - the command line is where a replay gets its time
    sources = list(open_sources(args.source, since=args.since, now=now))
    name = short_id("replay", {"source": args.source, "at": now.isoformat()})
    if args.publish or args.live or args.notify:
        if len(sources) > 1:
            raise InputRejected(
                f"{args.source!r} was not sent",
                why=f"it holds {len(sources)} examples, each with services of its own",
                hint=f"send one of them, such as {sources[0].example!r}",
            )
        if sources[0].request is not None:
            raise InputRejected(
                f"{args.source!r} was not sent",
                why="it is a change request, which a person asks for again",
                hint=f"see: sre-agent incidents show {sources[0].request.id}, and ask: sre-agent change "
                f"{sources[0].service}",
            )
        return _publish(sources[0].records, args, name)
    open_left = False
    for source in sources:
        if len(sources) > 1 and not args.json:
            print(f"== {terminal(source.example)} ==")
        open_left = bool(_analyse(source, args, run=name, now=now)) or open_left
    return 1 if open_left else 0


def _analyse(source: "Source", args: argparse.Namespace, *, run: str, now: datetime) -> int:
    from agent.entrypoints.cli.analysis import analysis

    with analysis(source.settings, run=run, now=now, services=source.services) as found:
        records = _Counted(source.records)
        if source.request is not None:
            found.ask(source.request)
        bad = found.feed_all(records, service=source.service)
        incidents = found.settle()
        for error in bad:
            print(f"sre-agent replay: {shown_message(str(error))}", file=sys.stderr)
        if not incidents:
            _refuse_unread(source.example or args.source, records=records.number, bad=len(bad))
        return _show(incidents, source.example, now=found.clock.now(), as_json=args.json)


def _publish(records: Iterable[Record], args: argparse.Namespace, name: str) -> int:
    """Send the records to the running service; it works on them, and this call does not wait for it."""
    from agent.entrypoints.cli.analysis import message_of

    bus, operator = _running_service(live=args.live)
    attributes = {"run": name} | ({"started_by": operator} if operator else {})
    attributes |= {"live": "true"} if args.live else {}
    attributes |= {"notify": "true"} if args.notify else {}
    sent, refused = 0, 0
    for record in records:
        try:
            message = message_of(record, attributes)
        except InputRejected as error:
            refused += 1
            print(f"sre-agent replay: {shown_message(str(error))}", file=sys.stderr)
            continue
        bus.publish(message)
        sent += 1
    print(f"{sent} events sent as run {name}" + (f", {refused} refused" if refused else ""), file=sys.stderr)
    print(f"see what comes of them: sre-agent incidents list --run {name}", file=sys.stderr)
    if args.json:
        print(json.dumps({"run": name, "sent": sent, "refused": refused}))
    _refuse_unread(args.source, records=sent + refused, bad=refused)
    return 0


def _running_service(*, live: bool) -> "tuple[Bus, str]":
    """Return the bus of the service that the settings name, and who sends, as that service knows people.

    In the cloud that is the address of the operator's own ID token: who starts a live replay does not approve it, and
    the name of an account of this machine would bar nobody. Where nothing can be approved, no token is asked for.

    Raises:
        InputRejected: The settings lead to two services.
        DependencyFailed: No ID token can be had.
    """
    from agent.app import Role, build_app
    from agent.app.channels import operator_token
    from agent.settings import read_settings

    settings = read_settings()
    if settings.bus != "embedded":
        from agent.entrypoints.http.id_token import named_in

        return build_app(settings, Role.INGEST).bus, named_in(operator_token(settings)) if live else ""
    if settings.decide_url is not None:
        raise InputRejected(
            "nothing was sent",
            why="DECIDE_URL is a service in the cloud, but BUS is a file on this machine",
            hint="set BUS=pubsub:<project> to send it there, or unset DECIDE_URL",
        )
    return build_app(settings).bus, _operator()


class _Counted:
    """Records, and how many there were."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._records, self.number = records, 0

    def __iter__(self) -> Iterator[Record]:
        for record in self._records:
            self.number += 1
            yield record


def _refuse_unread(source: str, *, records: int, bad: int) -> None:
    """Refuse a source of which nothing was understood."""
    if records and bad >= records:
        raise InputRejected(
            f"{source!r} was not replayed",
            why=f"not one of its {records} records is a known event",
            hint="see docs/intake.md for what is read; sre-agent classify takes records of other shapes",
        )


def _operator() -> str:
    from agent.app.operating_system import user_name

    return user_name()


def _show(incidents: tuple[Incident, ...], example: str, *, now: datetime, as_json: bool) -> int:
    named = {"example": example} if example else {}
    for incident in incidents:
        row = named | incident_json(incident)
        print(for_programs(row) if as_json else without_secrets("\n".join(lines(incident, now=now))))
    if not incidents:
        print("no incident: nothing in there needs anybody", file=sys.stderr if as_json else sys.stdout)
    return 0 if all(i.phase in OVER for i in incidents) else 1


def _observed_json(incident: Incident) -> dict[str, object] | None:
    """What a start printed beside what was predicted, by figure: a row of known start-ups, ready to be kept."""
    seen = incident.verification.observed if incident.verification else None
    if seen is None:
        return None
    shown = seen.model_dump(mode="json", exclude={"figures"})
    return shown | {key: {f.name: getattr(f, key) for f in seen.figures} for key in ("predicted", "observed", "off")}


def incident_json(incident: Incident) -> dict[str, object]:
    """Return an incident for machines: what it is about first, then everything."""
    diagnosis, plan = incident.diagnosis, incident.plan
    return {
        "id": incident.id,
        "service": incident.service,
        "revision": incident.revision,
        "phase": incident.phase.value,
        "class": incident.cause,
        "cause": diagnosis.root_cause if diagnosis else None,
        "certain": diagnosis.certain if diagnosis else False,
        "evidence": [e.model_dump(mode="json") for e in diagnosis.evidence] if diagnosis else [],
        "signals": [j.model_dump(mode="json") for j in incident.correlated],
        "plan": plan.model_dump(mode="json") | {"digest": plan.digest} if plan else None,
        "observed": _observed_json(incident),
        "incident": incident.model_dump(mode="json"),
    }
