"""A sweep on the command line: planned, allowed, run, and gone on with after whatever ended it."""

import argparse
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final, TextIO

from agent.entrypoints.cli.output import for_people, for_programs, without_secrets
from agent.entrypoints.cli.sweep_approval import awaited, granted, print_plan, say_unapproved
from agent.entrypoints.cli.sweep_arguments import cells_asked, check_limits
from agent.entrypoints.cli.sweep_reports import target_of
from agent.errors import InputRejected, SreError

if TYPE_CHECKING:
    from agent.app import App
    from agent.core.sweep.grant import SweepGrant
    from agent.core.sweep.planning import SweepPlan
    from agent.core.sweep.sweep import Subject, Sweep
    from agent.stages.run_sweep import Progress, SweepOutcome

EXIT_CODES: Final = {"done": 0, "used_up": 1, "stopped": 2, "no_answer": 3, "failed": 3}


def run(args: argparse.Namespace) -> int:
    """Plan a sweep, or go on with one, and run what is allowed.

    Returns:
        0: every cell is measured or dropped; 1: nothing can run, nobody approved it yet, or the approval is used up;
        2: stopped by the kill switch or beside something open; 3: the server, the driver or the disk failed.

    Raises:
        SreError: What was asked cannot be.
    """
    from agent.app.operating_system import require_unix

    require_unix("no sweep was run")
    if args.install_driver:
        from agent.app.sweep_job import install_driver
        from agent.settings import read_settings

        install_driver(read_settings().state, lambda said: print(said, file=sys.stderr, flush=True))
        return 0
    from agent.app.sweep_subject import endpoint_of, refuse_watched_port

    check_limits(args)
    target_of(args.slo)  # one that cannot be read is refused before anything is sent
    app = open_app()
    if not args.service:
        refuse_watched_port(app, endpoint_of(args.url))
    folder = Path(args.out) if args.out else Path("sweeps") / _name(args)
    sweep = _planned(app, args, folder)
    people = sys.stderr if args.json else sys.stdout
    print_plan(sweep, people=people)
    if args.dry_run or not sweep.plan.runnable:
        if args.json:
            print(for_programs({"sweep": sweep.request.id, "plan": sweep.plan.model_dump(mode="json")}))
        return 0 if sweep.plan.runnable else 1
    if not _left(sweep, folder):
        if not args.json:
            print(f"every cell is measured; see: sre-agent sweep show {shlex.quote(str(folder))}")
        return _say_outcome(_stored(folder), sweep, folder, slo=args.slo, as_json=args.json)
    grant = granted(app, sweep, folder)
    if grant is None and args.wait:
        grant = awaited(app, sweep, folder, people)
    if grant is None:
        return say_unapproved(sweep, folder, as_json=args.json)
    return _run(app, args, sweep, grant, folder=folder)


def open_app() -> "App":
    """Return the installation of this machine; one in the cloud is refused."""
    from agent.app import build_app
    from agent.entrypoints.cli.local_settings import require_local_settings
    from agent.entrypoints.telemetry import configure_log
    from agent.settings import read_settings

    configure_log(as_json=False, quiet=True)
    settings = read_settings()
    hint = "run it on a machine of its own: STORE=sqlite:FOLDER, with SERVICES, POLICY and PLATFORM as installed"
    require_local_settings(settings, what="no sweep was run", hint=hint)
    return build_app(settings)


def _name(args: argparse.Namespace) -> str:
    from agent.app.sweep_subject import endpoint_of

    return args.service or re.sub(r"[^A-Za-z0-9.-]+", "-", endpoint_of(args.url).split("://", 1)[1]).strip("-.")


def _planned(app: "App", args: argparse.Namespace, folder: Path) -> "Sweep":
    """Return the sweep of the folder, or a new one."""
    from agent.app.sweep_job import open_folder
    from agent.app.sweep_subject import known_of, of_service, of_url
    from agent.core.sweep.planning import plan_sweep

    kept, asked = open_folder(folder).sweep(), cells_asked(args)
    if kept is None and folder.is_dir() and any(folder.iterdir()):
        raise InputRejected(
            f"folder {str(folder)!r} was not used",
            why="it holds something else than a sweep",
            hint="give another --out",
        )
    if kept is not None and kept.plan.asked == asked:
        _check_same(kept, args, folder)
        return kept
    if kept is not None:
        raise _another(folder, "other cells")
    said, hide = vars(args), app.rules.redact
    found = of_service(app, args.service, said, hide) if args.service else of_url(said, hide)
    subject, known = known_of(*found, asked.contexts)
    return _new(app, args, subject, plan_sweep(asked, known), known.usd_per_h)


def _check_same(kept: "Sweep", args: argparse.Namespace, folder: Path) -> None:
    """Refuse to go on with a sweep of something else, or with other limits than were approved."""
    from agent.app.sweep_subject import endpoint_of

    request = kept.request
    server = (args.service or "", endpoint_of(args.url) if args.url else request.endpoint)
    if (request.service, request.endpoint) != server or (args.model or request.model) != request.model:
        raise _another(folder, f"{request.service or request.endpoint} with {request.model}")
    if (request.max_minutes, request.max_usd) != (args.max_minutes, args.max_usd):
        raise _another(folder, f"limits of {request.max_minutes:g} minutes and {request.max_usd or 'no'} USD")


def _another(folder: Path, holds: str) -> InputRejected:
    return InputRejected(
        f"the sweep in {str(folder)!r} does not go on",
        why=f"it has {holds}",
        hint="give the same command as before, or another --out",
    )


def _new(
    app: "App", args: argparse.Namespace, subject: "Subject", plan: "SweepPlan", usd_per_h: float | None
) -> "Sweep":
    from agent.app.operating_system import user_name
    from agent.core.decision.decision import Channel
    from agent.core.sweep.sweep import Sweep, SweepAsker, sweep_request

    asker = SweepAsker(
        who=args.by or user_name(),
        channel=Channel.COMMAND_LINE,
        max_minutes=args.max_minutes,
        max_usd=args.max_usd,
        at=app.clock.now(),
    )
    return Sweep(
        request=sweep_request(asker, subject, plan, usd_per_h=usd_per_h),
        subject=subject,
        plan=plan,
        seed=args.seed,
        ignore_eos=not args.stop_at_eos,
        stop_over_saturated=args.stop_over_saturated,
    )


def _left(sweep: "Sweep", folder: Path) -> bool:
    from agent.app.sweep_job import open_folder
    from agent.stages.run_sweep import cells_left

    return bool(cells_left(sweep.plan, sweep.request, open_folder(folder).cells()))


def _stored(folder: Path) -> "SweepOutcome":
    from agent.app.sweep_job import open_folder
    from agent.stages.run_sweep import SweepEnd, SweepOutcome

    return SweepOutcome(end=SweepEnd.DONE, why="", cells=open_folder(folder).cells())


def _run(app: "App", args: argparse.Namespace, sweep: "Sweep", grant: "SweepGrant", *, folder: Path) -> int:
    from agent.app.sweep_job import begin, driver_of
    from agent.core.sweep.provenance import Driver
    from agent.ports.stage_context import Owner
    from agent.stages.grant_sweep import check_grant
    from agent.stages.run_sweep import run_sweep

    context = app.contexts[Owner.DECIDE]
    check_grant(context, grant, sweep.request)  # before a first question: a server that sleeps is not woken unasked
    driver = driver_of(app, None if args.driver == "auto" else Driver(args.driver))
    people = sys.stderr if args.json else sys.stdout
    by = f"approved by {grant.approver}, {grant.approved_at:%Y-%m-%d %H:%M} UTC; load generator {driver.name}"
    print(for_people(by, lines=False), file=people, flush=True)
    job = begin(app, sweep, grant, folder=folder, driver=driver, say=lambda step: _say(step, people))
    try:
        with _signals_interrupt():
            outcome = run_sweep(context, job)
    except KeyboardInterrupt:
        print("\ninterrupted; stored cells are kept, rerun the same command to go on", file=sys.stderr)
        raise
    _calibrate(app, outcome, people)
    return _say_outcome(outcome, sweep, folder, slo=args.slo, as_json=args.json)


def _calibrate(app: "App", outcome: "SweepOutcome", people: TextIO) -> None:
    """Add what a finished sweep tells to the calibration; that it tells nothing takes nothing from the sweep."""
    from agent.app.calibration import keep_measurements
    from agent.stages.run_sweep import SweepEnd

    if outcome.end is not SweepEnd.DONE:
        return
    try:
        new = keep_measurements(app.settings, outcome.cells)
    except SreError as error:
        print(for_people(f"not added to the calibration: {error.cause}", lines=False), file=people)
        return
    if new:
        print(f"added to the calibration: {new} measured; see: sre-agent calibration list", file=people)


def _say(step: "Progress", people: TextIO) -> None:
    from agent.presentation.sweep.plan_text import began_line, ended_line

    line = began_line(step.planned, step.number, step.of) if step.cell is None else ended_line(step.cell)
    print(for_people(line, lines=False), file=people, flush=True)


def _say_outcome(outcome: "SweepOutcome", sweep: "Sweep", folder: Path, *, slo: str | None, as_json: bool) -> int:
    written = _reported(folder, slo) if any(cell.measured for cell in outcome.cells) else ""
    if as_json:
        cells = [cell.model_dump(mode="json") for cell in outcome.cells]
        summary = {"sweep": sweep.request.id, "end": outcome.end, "why": outcome.why, "folder": str(folder)}
        print(for_programs({**summary, "report": written, "cells": cells}))
    elif outcome.why:
        print(for_people(f"ended: {outcome.why}; stored cells are kept, the same command goes on", lines=False))
    if written and not as_json:
        print(without_secrets(f"report: {written}"))
    return EXIT_CODES[outcome.end]


def _reported(folder: Path, slo: str | None) -> str:
    """Write the report; that it could not be written takes nothing from what was measured."""
    from agent.app.sweep_reports import write_report

    try:
        return str(write_report(folder, target_of(slo))[0])
    except SreError as error:
        print(for_people(str(error), lines=False), file=sys.stderr)
        return ""


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Take a hang-up and a request to end as Ctrl-C, so that the load generator ends with us."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
