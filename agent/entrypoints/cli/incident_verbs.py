"""What the incidents command does about one incident: acknowledge, assign, comment, close, done, replan, roll back."""

import argparse
import sys
from typing import TYPE_CHECKING, Final

from agent.core.incident.command import Command
from agent.core.incident.incident import Incident
from agent.entrypoints.cli.output import for_people
from agent.errors import InputRejected

if TYPE_CHECKING:
    from agent.entrypoints.operator_client.protocol import OperatorClient

VERBS: Final = {
    "ack": Command.ACKNOWLEDGE,
    "assign": Command.ASSIGN,
    "comment": Command.COMMENT,
    "close": Command.CLOSE,
    "done": Command.DONE,
    "replan": Command.REPLAN,
    "roll-back": Command.ROLL_BACK,
}
_WORDS: Final = {Command.ASSIGN: "WHO", Command.COMMENT: "TEXT"}  # what stands after the id, of those that take words
_NEED_WHY: Final = frozenset({Command.CLOSE, Command.ROLL_BACK})
_SAID: Final = {
    Command.ACKNOWLEDGE: "is acknowledged",
    Command.ASSIGN: "is assigned",
    Command.COMMENT: "has the comment",
    Command.CLOSE: "is closed",
    Command.DONE: "has its task marked as done",
    Command.REPLAN: "gets another plan, if one is left",
    Command.ROLL_BACK: "is rolled back",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the verbs take."""
    parser.add_argument(
        "words", nargs="*", metavar="TEXT", help="with comment: the text; with assign: a name, me or nobody"
    )
    parser.add_argument("--why", metavar="TEXT", default="", help="the reason; close and roll-back need one")
    parser.add_argument(
        "--digest",
        metavar="HEX",
        help="with done and roll-back: the digest of the plan; refuse if the plan has changed since",
    )
    parser.add_argument("--by", metavar="NAME", help="your name (local mode only; shown as not verified)")


def act(args: argparse.Namespace) -> Incident:
    """Do it; return the incident as it is then.

    Raises:
        InputRejected: The arguments do not go with the verb.
        SreError: See :class:`agent.entrypoints.operator_client.protocol.OperatorClient`.
    """
    from agent.entrypoints.operator_client.local import open_operator_client
    from agent.entrypoints.operator_client.protocol import OperatorCommand

    command = VERBS[args.what]
    text = _text(args, command)
    client, seen = open_operator_client(), args.digest
    if command is Command.ROLL_BACK and seen is None:
        seen = _shown_plan(client, args.id)
    return client.command(OperatorCommand(incident=args.id, command=command, text=text, by=args.by, plan_digest=seen))


def _shown_plan(client: "OperatorClient", incident_id: str) -> str:
    """Show in one line what a roll-back puts back; return the digest of that plan.

    Raises:
        InputRejected: There is no such incident, or it has no plan.
    """
    from agent.presentation.plan_title import plan_title

    plan = client.incident(incident_id).plan
    if plan is None:
        raise _wrong("roll-back", "the incident has no plan", f"look at it: sre-agent incidents show {incident_id}")
    said = f"puts back what plan {plan.id} changed: {plan_title(plan)}"
    print(for_people(said, lines=False), file=sys.stderr)
    return plan.digest


def act_text(incident: Incident, verb: str) -> str:
    """Return what was done, and how the incident stands."""
    from agent.entrypoints.operator_client.protocol import now
    from agent.presentation.standing import responders_text, standing

    people = responders_text(incident)
    said = f"{standing(incident, now()).says}" + (f" {people[:1].upper()}{people[1:]}." if people else "")
    return for_people(f"incident {incident.id} {_SAID[VERBS[verb]]}. {said}", lines=False)


def _text(args: argparse.Namespace, command: Command) -> str:
    """Return what is said: the words after the id, or the reason."""
    usage = f"sre-agent incidents {args.what} ID"
    if command in _WORDS:
        if not args.words:
            raise _wrong(args.what, f"it takes {_WORDS[command]} after the id", f"{usage} {_WORDS[command]}")
        return " ".join(args.words)
    if args.words:
        why = f"{args.words[0]!r} does not belong to it"
        raise _wrong(args.what, why, f"give a reason with --why: {usage} --why TEXT")
    if command in _NEED_WHY and not args.why.strip():
        raise _wrong(args.what, "it needs a reason", f"{usage} --why TEXT")
    return str(args.why)


def _wrong(verb: str, why: str, hint: str) -> InputRejected:
    return InputRejected(f"incidents {verb} did nothing", why=why, hint=hint)
