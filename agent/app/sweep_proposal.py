"""A sweep that is proposed: planned with the operator's own credentials and kept for a person; nothing is sent."""

import shlex
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from agent.adapters.load.sweep_folder import SweepFolder
from agent.app import App
from agent.app.sweep_reports import SWEEPS
from agent.app.sweep_subject import known_of, of_service
from agent.core.decision.decision import Channel
from agent.core.sweep.grant import SweepRequest
from agent.core.sweep.planning import SweepAsked, SweepPlan, plan_sweep
from agent.core.sweep.sweep import SWEEP_FILE, Subject, Sweep, SweepAsker, sweep_request
from agent.core.value import Value, digest
from agent.errors import InputRejected, PolicyRefused
from agent.ports.stage_context import Owner
from agent.stages.decide_sweep import ask_sweep
from agent.stages.tell_sweep import tell_sweep

MOST_WAITING: Final = 20
"""Proposals that nobody approved yet: who reads them is a person."""

VALID: Final = timedelta(hours=24)
"""A proposal of which nothing came is planned anew after that: the service may have changed."""


class SweepWish(Value):
    """What somebody wants measured.

    Attributes:
        service: Name in services.toml.
        asked: The cells.
        max_minutes: Of load.
        max_usd: What the server may cost meanwhile; None sets no limit.
        by: Who asks.
        verified: Whether a token proved that name.
    """

    service: str
    asked: SweepAsked
    max_minutes: float
    max_usd: float | None = None
    by: str = ""
    verified: bool = False

    @property
    def command(self) -> str:
        """What a person types to plan the same and, once approved, to run it."""
        words = ["sre-agent", "sweep", "--service", self.service]
        words += ["--concurrency", ",".join(map(str, self.asked.concurrencies))]
        words += ["--context", ",".join(map(str, self.asked.contexts))]
        words += ["--output-tokens", str(self.asked.output_tokens)]
        words += ["--requests", str(self.asked.requests)] if self.asked.requests is not None else []
        words += ["--rates", str(self.asked.rates)] if self.asked.rates else []
        words += ["--max-minutes", _exactly(self.max_minutes)]
        words += ["--max-usd", _exactly(self.max_usd)] if self.max_usd is not None else []
        return shlex.join(words)


def _exactly(number: float) -> str:
    """Write every digit: what is typed must be what was approved."""
    return str(number).removesuffix(".0")


@dataclass(frozen=True, kw_only=True)
class ProposedSweep:
    """A sweep that waits for a person.

    Attributes:
        sweep: With its plan.
        folder: Where it is kept.
        approvers: Whom policy lets approve, without who asks.
    """

    sweep: Sweep
    folder: Path
    approvers: tuple[str, ...]


def propose_sweep(app: App, wish: SweepWish) -> ProposedSweep:
    """Plan a sweep and keep it for a person's approval; the same wish again finds the same proposal.

    Raises:
        InputRejected: The service is not watched or has no address, or no cell of it can run.
        PolicyRefused: Too many proposals wait already.
        DependencyFailed: The platform did not answer, or the folder cannot be written.
    """
    place = app.settings.state / SWEEPS
    folder = place / f"{wish.service}-{digest(wish)[:12]}"
    people = (a for a in app.rules.policy.approvers_of(wish.service) if wish.by.casefold() not in a.identities)
    approvers = tuple(approver.name for approver in people)
    kept = SweepFolder(folder)
    before = kept.sweep()
    if before is not None and (kept.grant() is not None or app.clock.now() - before.request.made_at < VALID):
        return ProposedSweep(sweep=before, folder=folder, approvers=approvers)
    waiting = [path for path in place.glob(f"*/{SWEEP_FILE}") if SweepFolder(path.parent).grant() is None]
    if len(waiting) >= MOST_WAITING and before is None:
        raise PolicyRefused(
            "no sweep was proposed",
            why=f"{len(waiting)} proposed sweeps wait for a person",
            hint=f"approve them with sre-agent sweep approve DIR, or remove their folders below {place}",
        )
    _check_address(app, wish)
    subject, known = known_of(*of_service(app, wish.service, {}, app.rules.redact), wish.asked.contexts)
    plan = plan_sweep(wish.asked, known)
    sweep = Sweep(request=_request(app, wish, subject, plan, known.usd_per_h), subject=subject, plan=plan)
    kept.keep(sweep)
    ask_people(app, sweep)
    return ProposedSweep(sweep=sweep, folder=folder, approvers=approvers)


def ask_people(app: App, sweep: Sweep) -> None:
    """Put a sweep on record for those who may approve it, and tell those who are told of changes; telling fails open.

    Raises:
        PolicyRefused: Too many wait already.
        DependencyFailed: It could not be recorded.
    """
    context = app.contexts[Owner.DECIDE]
    if ask_sweep(context, sweep):
        tell_sweep(context, sweep.request.id)


def _check_address(app: App, wish: SweepWish) -> None:
    """Refuse where only a person can name the address: a client could name one that gets the service's key."""
    platform = app.environment.platform_of(app.services.service(wish.service).name)
    if platform is not None and not platform.describe(wish.service).url:
        raise InputRejected(
            "no sweep was proposed",
            why=f"the platform of {wish.service!r} names no address",
            hint=f"a person who knows it runs: {wish.command} --url URL",
        )


def _request(app: App, wish: SweepWish, subject: Subject, plan: SweepPlan, usd_per_h: float | None) -> SweepRequest:
    if not plan.runnable:
        raise InputRejected(
            "no sweep was proposed", why=plan.cells[0].cannot_run, hint="ask for shorter contexts or fewer requests"
        )
    asker = SweepAsker(
        who=wish.by,
        channel=Channel.MCP,
        verified=wish.verified,
        max_minutes=wish.max_minutes,
        max_usd=wish.max_usd,
        at=app.clock.now(),
    )
    return sweep_request(asker, subject, plan, usd_per_h=usd_per_h)
