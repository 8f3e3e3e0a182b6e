"""The approval of a sweep on the command line: given here, looked for on the record, or waited for."""

import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from agent.entrypoints.cli.output import for_people, for_programs
from agent.errors import InputRejected, PolicyRefused

if TYPE_CHECKING:
    from agent.app import App
    from agent.core.sweep.grant import SweepGrant
    from agent.core.sweep.sweep import Sweep

ANSWER_EVERY_S: Final = 1.0
PAUSE: Callable[[float], None] = time.sleep


def approve(app: "App", folders: list[str], *, by: str | None, shown_id: str | None, as_json: bool) -> int:
    """Approve a sweep that was asked for; one of an AI client only with the id that is shown with its plan.

    Returns:
        0.

    Raises:
        InputRejected: The folder holds no sweep.
        PolicyRefused: This person may not, no sweep may run now, or another plan was shown.
    """
    from agent.app.operating_system import user_name
    from agent.app.sweep_job import open_folder
    from agent.core.decision.decision import Channel, Person
    from agent.ports.stage_context import Owner
    from agent.stages.grant_sweep import grant_sweep
    from agent.stages.tell_sweep import tell_sweep

    kept = open_folder(Path(folders[0])) if len(folders) == 1 else None
    sweep = kept.sweep() if kept is not None else None
    if kept is None or sweep is None:
        raise InputRejected("no sweep was approved", why="want one folder of a planned sweep", hint="name its --out")
    _check_shown(sweep, shown_id)
    who = by or user_name()
    context = app.contexts[Owner.DECIDE]
    done = grant_sweep(context, sweep.request, person=Person(who=who, channel=Channel.COMMAND_LINE, verified=False))
    grant = done.grant
    if grant is not None:
        kept.keep(grant)
        tell_sweep(context, sweep.request.id)
    if as_json:
        ends_at = grant.expires_at.isoformat() if grant is not None else None
        said = {"sweep": sweep.request.id, "approved_by": who, "expires_at": ends_at}
        print(for_programs(said | {"approvals": len(done.given), "approvals_needed": done.needed}))
    elif grant is None:
        print(f"{len(done.given)} of {done.needed} approvals: another person must approve it too")
    else:
        print(f"approved until {grant.expires_at:%Y-%m-%d %H:%M} UTC; give the command that planned it again to run it")
    return 0


def _check_shown(sweep: "Sweep", shown_id: str | None) -> None:
    """Let whoever approves show that they saw this very plan, where an AI client asked for it (S19)."""
    from agent.core.decision.decision import Channel

    request = sweep.request
    if not sweep.shows_what_it_asks:
        raise InputRejected(
            "the sweep was not approved",
            why="its plan and what would be approved are different cells",
            hint="plan it again with another --out",
        )
    if shown_id == request.id or (shown_id is None and request.channel is not Channel.MCP):
        return
    print_plan(sweep, people=sys.stdout)
    print(f"id: {request.id}, asked for by {for_people(request.asker, lines=False)}")
    raise PolicyRefused(
        "the sweep was not approved",
        why=f"it is not {shown_id!r}" if shown_id else f"{request.asker!r} is an AI client, and no id was given",
        hint="look at the plan above, then give its id: --id ID",
    )


def print_plan(sweep: "Sweep", *, people: TextIO) -> None:
    """Print what would be sent."""
    from agent.presentation.sweep.plan_text import plan_lines

    print("\n".join(for_people(line, lines=False) for line in plan_lines(sweep)), file=people, flush=True)


def granted(app: "App", sweep: "Sweep", folder: Path) -> "SweepGrant | None":
    """Keep the sweep, and return its grant: that of one's own act, or the one that somebody gave.

    Raises:
        PolicyRefused: Somebody rejected it.
    """
    from agent.app.sweep_job import open_folder
    from agent.app.sweep_proposal import ask_people
    from agent.core.decision.decision import Person
    from agent.ports.stage_context import Owner
    from agent.stages.grant_sweep import grant_sweep, is_own_act

    kept, request, context = open_folder(folder), sweep.request, app.contexts[Owner.DECIDE]
    if kept.sweep() is None:
        kept.keep(sweep)
    grant = kept.grant()
    if grant is None and is_own_act(request):
        grant = grant_sweep(
            context, request, person=Person(who=request.asker, channel=request.channel, verified=False)
        ).grant
        if grant is not None:
            kept.keep(grant)
    if grant is None:
        ask_people(app, sweep)
        grant = _given(app, sweep, folder)
    return grant


def _given(app: "App", sweep: "Sweep", folder: Path) -> "SweepGrant | None":
    """Return the grant that stands on record, and keep it in the folder.

    Raises:
        PolicyRefused: Somebody rejected it.
    """
    from agent.app.sweep_job import open_folder
    from agent.ports.stage_context import Owner
    from agent.stages.decide_sweep import asked_sweep

    asked = asked_sweep(app.contexts[Owner.DECIDE], sweep.request.id)
    if asked.rejected_by:
        raise PolicyRefused(
            f"sweep {sweep.request.id!r} was not run",
            why=f"{asked.rejected_by} rejected it{f': {asked.why}' if asked.why else ''}",
            hint="plan it again with another --out, and ask again",
        )
    if asked.grant is not None:
        open_folder(folder).keep(asked.grant)
    return asked.grant


def awaited(app: "App", sweep: "Sweep", folder: Path, people: TextIO) -> "SweepGrant | None":
    """Wait until somebody answers; looked for every second. None where the asking is over.

    Raises:
        PolicyRefused: Somebody rejected it.
    """
    from agent.app.sweep_job import open_folder
    from agent.core.sweep.grant import VALID

    kept, ends = open_folder(folder), sweep.request.made_at + VALID
    print(f"waits for approval until {ends:%Y-%m-%d %H:%M} UTC: {_how(folder)}", file=people, flush=True)
    grant = None
    while grant is None and app.clock.now() < ends:
        grant = kept.grant() or _given(app, sweep, folder)
        if grant is None:
            PAUSE(ANSWER_EVERY_S)
    return grant


def _how(folder: Path) -> str:
    return f"the page /sweeps of the console, Slack, or sre-agent sweep approve {shlex.quote(str(folder))}"


def say_unapproved(sweep: "Sweep", folder: Path, *, as_json: bool) -> int:
    """Say that nobody approved it yet, and how it is done; return the exit code."""
    how = f"sre-agent sweep approve {shlex.quote(str(folder))}"
    if as_json:
        plan = sweep.plan.model_dump(mode="json")
        print(for_programs({"sweep": sweep.request.id, "end": "not_approved", "approve": how, "plan": plan}))
    else:
        print(f"needs approval, for it loads what others may use: {how}")
        print("  or answer on the page /sweeps of the console, or in Slack; --wait starts as soon as it is approved")
    return 1
