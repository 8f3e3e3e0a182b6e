"""The policy command: explain why a plan, or a change that somebody would ask for, is allowed or not."""

import argparse
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import Field, ValidationError

from agent.core.decision.limit_use import limit_uses
from agent.core.plan.action import Action
from agent.core.value import Value, mistakes_of
from agent.errors import InputRejected, SreError
from agent.presentation.policy_explanation import Row, Subject, explain, is_allowed, subject_of_plan, subject_of_request

if TYPE_CHECKING:
    from agent.core.decision.policy import Policy
    from agent.entrypoints.operator_client.protocol import OperatorClient
    from agent.settings import Settings
    from agent.stages.check_change import ChangeCheck

FILE_LIMIT: Final = 65_536
_PLAN = re.compile(r"p-((?:rq-)?[A-Za-z0-9-]{1,80})-\d+")
_REQUEST = re.compile(r"rq-[A-Za-z0-9-]{1,80}")
_HINT = (
    'give the id of a plan or a request, or a file such as {"service": "S", "actions": [{"kind": "restart"}], '
    '"asker": "NAME"}'
)


class _Request(Value):
    """A change that somebody would ask for."""

    service: str = Field(min_length=1, max_length=63)
    actions: tuple[Action, ...] = Field(min_length=1, max_length=16)
    asker: str | None = Field(default=None, max_length=320)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the words."""
    parser.add_argument("what", choices=["test"], help="explain row by row what the policy says")
    parser.add_argument(
        "subject", metavar="PLAN|REQUEST|FILE", help="id of a plan or request, or a JSON file with service and actions"
    )
    parser.add_argument("--by", metavar="NAME", help="ask about this approver, too: a name or identity of policy.toml")
    parser.add_argument(
        "--at", metavar="TIME", help="as of this time, such as 2026-12-24T18:00:00+01:00 (default: now)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Explain it.

    Returns:
        0 where nothing refuses it, 1 where something does.

    Raises:
        InputRejected: There is no such plan or request, or the file or time was not understood.
        SettingsRejected: The policy has mistakes.
        DependencyFailed: The plan or request could not be read.
    """
    from agent.app.catalogues import read_policy
    from agent.entrypoints.cli.output import for_programs
    from agent.entrypoints.operator_client.protocol import now
    from agent.settings import read_settings

    settings = read_settings()
    policy = read_policy(settings)
    at = _time(args.at) if args.at is not None else now()
    policy, subject = _looked_at(args.subject, policy, settings, at)
    rows = explain(policy, subject, at=at, by=args.by)
    allowed = is_allowed(rows)
    if args.json:
        shown = {"allowed": allowed, "at": at.isoformat(), "service": subject.service, "policy": policy.digest}
        print(for_programs(shown | {"rows": [row.model_dump(mode="json") for row in rows]}))
    else:
        _print(rows, allowed=allowed)
    return 0 if allowed else 1


def _print(rows: tuple[Row, ...], *, allowed: bool) -> None:
    from agent.entrypoints.cli.output import for_people

    for row in rows:
        print(f"{row.answer.value:<8} {row.check:<10} {for_people(row.says, lines=False)}")
    print("allowed, with the approvals listed above" if allowed else "not allowed: see the rows that say refused")


def _time(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputRejected("the time was not read", why=f"{text!r} is none", hint=_TIME) from error
    if at.tzinfo is None:
        raise InputRejected("the time was not read", why=f"{text!r} has no offset from UTC", hint=_TIME)
    return at.astimezone(UTC)


_TIME = "write it as 2026-12-24T18:00:00+01:00, or with Z for UTC"


def _looked_at(what: str, policy: "Policy", settings: "Settings", at: datetime) -> "tuple[Policy, Subject]":
    """Return the policy that counts, and the change with everything that is known of it now.

    A service of this machine says itself which policy is in force: a rehearsal shortens its waits.
    """
    from agent.entrypoints.operator_client.local import open_operator_client

    path = Path(what)
    if not path.is_file():
        client = open_operator_client()
        return _completed(client, _of_id(client, what), policy, settings, at)
    subject = _of_file(path)
    try:
        return _completed(open_operator_client(), subject, policy, settings, at)
    except SreError:
        return policy, subject  # a file can be explained where no installation can be reached


def _completed(
    client: "OperatorClient", subject: Subject, policy: "Policy", settings: "Settings", at: datetime
) -> "tuple[Policy, Subject]":
    asker = subject.asker if subject.policy is None else None
    check = client.check_change(subject.service, subject.actions, asker=asker, at=at)
    held = check.policy or policy
    changes = check.changes
    uses = limit_uses(held, subject.service, of_service=changes.service_changes, of_all=changes.by_service, now=at)
    known: dict[str, object] = {"stopped": check.stopped, "limits": uses, "local": _is_local(check, settings)}
    for name in ("over_budget", "unproved"):
        if (said := getattr(check, name)) is not None:
            known[name] = said
    return held, subject.with_(**known)


def _is_local(check: "ChangeCheck", settings: "Settings") -> bool:
    return check.policy is not None and settings.trusts_this_machine


def _of_file(path: Path) -> Subject:
    from agent.strict_json import read_object

    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputRejected(f"{str(path)!r} was not read", why=str(error), hint=_HINT) from error
    try:
        asked = _Request.model_validate(read_object(raw, what="request", limit=FILE_LIMIT, hint=_HINT))
    except ValidationError as error:
        raise InputRejected(
            f"{str(path)!r} was not read", why="; ".join(mistakes_of(error))[:500], hint=_HINT
        ) from error
    return Subject(service=asked.service, actions=asked.actions, asker=asked.asker or "somebody")


def _of_id(client: "OperatorClient", named: str) -> Subject:
    """Return a stored plan, or a request: its plan where it has one, else what was asked for."""
    if _REQUEST.fullmatch(named) is not None:
        incident = client.incident(named)
        return subject_of_plan(incident, incident.plan) if incident.plan is not None else subject_of_request(incident)
    found = _PLAN.fullmatch(named)
    if found is None:
        raise InputRejected(
            f"{named[:80]!r} was not found", why="it is no file, and no id of a plan or a request", hint=_HINT
        )
    owner = found[1] if found[1].startswith("rq-") else f"inc-{found[1]}"
    incident = client.incident(owner)
    if incident.plan is None or incident.plan.id != named:
        newer = f"; it has plan {incident.plan.id} now" if incident.plan is not None else ""
        why = f"it is not the plan of {owner} any more{newer}"
        raise InputRejected(f"plan {named!r} was not tested", why=why, hint=f"see: sre-agent incidents show {owner}")
    return subject_of_plan(incident, incident.plan)
