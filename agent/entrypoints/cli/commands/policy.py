"""The policy command: explain why a plan, or a change that somebody would ask for, is allowed or not."""

import argparse
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError

from agent.core.plan.action import Action
from agent.core.value import Value
from agent.errors import InputRejected
from agent.presentation.policy_explanation import Row, Subject, explain, is_allowed

FILE_LIMIT: Final = 65_536
_PLAN = re.compile(r"p-((?:rq-)?[A-Za-z0-9-]{1,80})-\d+")
_HINT = 'give the id of a plan, or a file such as {"service": "S", "actions": [{"kind": "restart"}], "asker": "NAME"}'


class _Request(Value):
    """A change that somebody would ask for."""

    service: str = Field(min_length=1, max_length=63)
    actions: tuple[Action, ...] = Field(min_length=1, max_length=16)
    asker: str | None = Field(default=None, max_length=320)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the words."""
    parser.add_argument("what", choices=["test"], help="explain row by row what the policy says")
    parser.add_argument("subject", metavar="PLAN|FILE", help="id of a plan, or a JSON file with service and actions")
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
        InputRejected: There is no such plan, or the file or time was not understood.
        SettingsRejected: The policy has mistakes.
        DependencyFailed: The plan could not be read.
    """
    from agent.app.catalogues import read_policy
    from agent.entrypoints.cli.output import for_programs
    from agent.entrypoints.operator_client.protocol import now
    from agent.settings import read_settings

    policy = read_policy(read_settings())
    at = _time(args.at) if args.at is not None else now()
    path = Path(args.subject)
    subject = _of_file(path) if path.is_file() else _of_plan(args.subject)
    rows = explain(policy, subject, at=at, by=args.by)
    allowed = is_allowed(rows)
    if args.json:
        told = {"allowed": allowed, "at": at.isoformat(), "service": subject.service, "policy": policy.digest}
        print(for_programs(told | {"rows": [row.model_dump(mode="json") for row in rows]}))
    else:
        _print(rows, allowed=allowed)
    return 0 if allowed else 1


def _print(rows: tuple[Row, ...], *, allowed: bool) -> None:
    from agent.entrypoints.cli.output import for_people

    for row in rows:
        print(f"{row.answer.value:<8} {row.check:<10} {for_people(row.says, lines=False)}")
    print("allowed, once whoever is needed has approved" if allowed else "not allowed: see the rows that say refused")


def _time(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputRejected("the time was not read", why=f"{text!r} is none", hint=_TIME) from error
    if at.tzinfo is None:
        raise InputRejected("the time was not read", why=f"{text!r} has no offset from UTC", hint=_TIME)
    return at.astimezone(UTC)


_TIME = "write it as 2026-12-24T18:00:00+01:00, or with Z for UTC"


def _of_file(path: Path) -> Subject:
    from agent.strict_json import read_object

    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputRejected(f"{str(path)!r} was not read", why=str(error), hint=_HINT) from error
    try:
        asked = _Request.model_validate(read_object(raw, what="request", limit=FILE_LIMIT, hint=_HINT))
    except ValidationError as error:
        rows = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InputRejected(f"{str(path)!r} was not read", why=rows[:500], hint=_HINT) from error
    return Subject(service=asked.service, actions=asked.actions, asker=asked.asker or "somebody")


def _of_plan(plan_id: str) -> Subject:
    from agent.entrypoints.operator_client.local import open_operator_client

    named = _PLAN.fullmatch(plan_id)
    if named is None:
        raise InputRejected(f"{plan_id[:80]!r} was not found", why="it is no file and no id of a plan", hint=_HINT)
    owner = named[1] if named[1].startswith("rq-") else f"inc-{named[1]}"
    incident = open_operator_client().incident(owner)
    plan, approvals = incident.plan, incident.approvals
    if plan is None or plan.id != plan_id:
        newer = f"; it has plan {plan.id} now" if plan is not None else ""
        why = f"it is not the plan of {owner} any more{newer}"
        raise InputRejected(f"plan {plan_id!r} was not tested", why=why, hint=f"see: sre-agent incidents show {owner}")
    return Subject(
        service=plan.target.service,
        actions=plan.actions,
        asker=plan.asked_by,
        unproved=plan.unproved,
        over_budget=approvals.over_budget if approvals is not None else None,
        given=tuple(a.name for a in approvals.given) if approvals is not None else (),
        policy=plan.policy,
    )
