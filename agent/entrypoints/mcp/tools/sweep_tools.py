"""Tools about load measurements: what a stored one says, and one that is proposed."""

import difflib
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from agent.entrypoints.mcp.tools.proposal_tools import ServiceName, client_name
from agent.entrypoints.mcp.tools.result import Result, one_line, page_of
from agent.errors import InputRejected

if TYPE_CHECKING:
    from agent.app.sweep_proposal import ProposedSweep, SweepWish
    from agent.core.sweep.cell import Cell
    from agent.core.sweep.findings import Findings

SweepName = Annotated[
    str, Field(max_length=128, description="name of a stored sweep; a wrong one tells which there are")
]
Offset = Annotated[int, Field(ge=0, description="next_offset of the page before")]

Sizes = Annotated[list[Annotated[int, Field(ge=1, le=10_000_000)]], Field(min_length=1, max_length=12)]

_SENTENCES = 20


class SweepCell(Result):
    """One cell; ``at_once`` counts the requests that produced tokens at once, null where nothing was measured.

    ``load`` is empty but of a step of a run of request rates, which has concurrency 0.
    """

    context_tokens: int
    output_tokens: int
    concurrency: int
    outcome: str
    why: str
    succeeded: int
    failed: int
    at_once: float | None
    output_tokens_per_s: float | None
    ttft_p50_s: float | None
    ttft_p99_s: float | None
    itl_p50_s: float | None
    itl_p99_s: float | None
    load: str = ""


class SweepShown(Result):
    """What a sweep found, and a page of its cells; ``made_of`` says what was measured, and when."""

    sweep: str
    findings: list[str]
    made_of: dict[str, str]
    cells: list[SweepCell]
    next_offset: int | None
    note: str = "measured by a load generator; a limit is named only where requests were seen to wait at it"


class SweepProposed(Result):
    """A sweep that waits for a person; nothing was sent. ``run`` is what a person types once it is approved.

    Attributes:
        sweep: Its name, for sweep_result; None where nothing is kept here.
        plan: What would be sent, what is left out and why, how long it takes and what it costs.
        may_approve: Whom the policy lets approve, without who asks.
        approve: What a person types to approve it.
    """

    sweep: str | None
    plan: list[str]
    may_approve: list[str]
    approve: str
    run: str
    note: str


class SweepTools:
    """The tools about sweeps.

    Args:
        folders: Finds the folders of stored sweeps by name.
        propose: Plans a sweep and keeps it for a person; None of an installation in the cloud.
        bearer: Returns who calls, as their token proves it; None where nobody signs in.
        redact: Takes secrets out of a text.
    """

    def __init__(
        self,
        folders: Callable[[], Mapping[str, Path]],
        *,
        propose: "Callable[[], Callable[[SweepWish], ProposedSweep] | None]",
        bearer: Callable[[], str | None],
        redact: Callable[[str], str],
    ) -> None:
        self._folders, self._propose, self._bearer, self._redact = folders, propose, bearer, redact

    def start_sweep(
        self,
        service: ServiceName,
        context: Context,
        *,
        concurrency: Sizes = [1, 4, 16],  # noqa: B006 - the SDK copies defaults
        context_tokens: Sizes = [1024],  # noqa: B006
        output_tokens: Annotated[int, Field(ge=1, le=1_000_000)] = 128,
        requests: Annotated[int | None, Field(ge=1, le=100_000, description="measured requests per cell")] = None,
        max_minutes: Annotated[float, Field(gt=0, le=240, description="of load")] = 20.0,
        max_usd: Annotated[float | None, Field(gt=0, le=100_000, description="what it may cost")] = None,
    ) -> SweepProposed:
        """Propose a load measurement of a service; a person approves it elsewhere and runs the command it returns."""
        from agent.app.sweep_proposal import SweepWish
        from agent.core.sweep.planning import SweepAsked
        from agent.presentation.sweep.plan_text import plan_lines

        if output_tokens >= min(context_tokens):
            why = f"{output_tokens} answer tokens leave no prompt in {min(context_tokens)}"
            raise InputRejected("no sweep was proposed", why=why, hint="lower output_tokens, or raise context_tokens")
        person = self._bearer()
        wish = SweepWish(
            service=service,
            asked=SweepAsked(
                contexts=tuple(context_tokens),
                concurrencies=tuple(concurrency),
                output_tokens=output_tokens,
                requests=requests,
            ),
            max_minutes=max_minutes,
            max_usd=max_usd,
            by=person or f"mcp:{client_name(context)}",
            verified=person is not None,
        )
        propose = self._propose()
        if propose is None:
            return _by_command(wish)
        proposed = propose(wish)
        folder = shlex.quote(str(proposed.folder))
        return SweepProposed(
            sweep=proposed.folder.name,
            plan=[one_line(line, redact=self._redact) for line in plan_lines(proposed.sweep)],
            may_approve=list(proposed.approvers),
            approve=f"sre-agent sweep approve {folder}",
            run=f"{wish.command} --out {folder}",
            note="nothing was sent; a person approves it and runs it, where a load generator is installed",
        )

    def sweep_result(
        self,
        sweep: SweepName,
        *,
        slo: Annotated[str, Field(max_length=400, description="a target such as ttft_p99<1s,itl_p99<50ms")] = "",
        offset: Offset = 0,
    ) -> SweepShown:
        """Show a stored load measurement: where requests wait, which flag binds, the best setting for a target."""
        from agent.app.sweep_reports import read_sweep
        from agent.core.sweep.target import read_target
        from agent.presentation.sweep.sentences import findings_text

        stored = read_sweep(self._folder(sweep))
        found = stored.find(read_target(slo) if slo else None)
        at_once = {
            (context.context_tokens, context.output_tokens, concurrency): count
            for context in found.contexts
            for concurrency, count in context.running
        }
        rows = [_row(cell, at_once, redact=self._redact) for cell in stored.cells]
        says = [one_line(text, redact=self._redact, most=600) for text in findings_text(found, stored.cells)]
        if len(says) > _SENTENCES:
            left = len(says) - _SENTENCES
            says = [*says[:_SENTENCES], f"and {left} more: sre-agent sweep report {sweep} writes all of them"]
        made_of = self._made_of(found)
        page, following = page_of(rows, offset=offset, beside=[says, made_of])
        return SweepShown(sweep=sweep, findings=says, made_of=made_of, cells=page, next_offset=following)

    def _folder(self, name: str) -> Path:
        known = self._folders()
        if name in known:
            return known[name]
        near = difflib.get_close_matches(name, known, n=1)
        raise InputRejected(
            f"sweep {name!r} is unknown",
            why=f"stored are {', '.join(sorted(known)[:50]) or 'none'}",
            hint=f"did you mean {near[0]!r}?" if near else "give the name of a folder below sweeps/",
        )

    def _made_of(self, found: "Findings") -> dict[str, str]:
        made = found.provenance
        stated = {
            "service": made.service,
            "model": made.model,
            "flags": made.flags,
            "vllm": made.vllm,
            "image": made.image,
            "accelerator": f"{made.accelerator_count} x {made.accelerator}" if made.accelerator else "",
            "region": made.region,
            "load_generator": f"{made.driver.value} {made.driver_version}",
            "started_at": made.started_at.isoformat(),
        }
        return {name: one_line(text or "unknown", redact=self._redact) for name, text in stated.items()}


def _by_command(wish: "SweepWish") -> SweepProposed:
    """Of an installation in the cloud: a sweep runs where its command runs, and is approved there."""
    return SweepProposed(
        sweep=None,
        plan=[],
        may_approve=[],
        approve="sre-agent sweep approve DIR",
        run=wish.command,
        note="nothing was sent or kept: a person runs the command on a machine of its own, and approves what it plans",
    )


def _row(cell: "Cell", at_once: Mapping[tuple[int, int, int], float], *, redact: Callable[[str], str]) -> SweepCell:
    from agent.presentation.sweep.figure_text import load_text

    planned, measured = cell.planned, cell.measured
    ttft, itl = (measured.ttft_s, measured.itl_s) if measured is not None else (None, None)
    return SweepCell(
        context_tokens=planned.context_tokens,
        output_tokens=planned.output_tokens,
        concurrency=planned.concurrency,
        outcome=cell.outcome.value,
        why=one_line(cell.why, redact=redact),
        succeeded=measured.succeeded if measured is not None else 0,
        failed=measured.failed if measured is not None else 0,
        at_once=at_once.get((planned.context_tokens, planned.output_tokens, planned.concurrency)),
        output_tokens_per_s=measured.output_tokens_per_s if measured is not None and measured.succeeded else None,
        ttft_p50_s=ttft.p50 if ttft is not None else None,
        ttft_p99_s=ttft.p99 if ttft is not None else None,
        itl_p50_s=itl.p50 if itl is not None else None,
        itl_p99_s=itl.p99 if itl is not None else None,
        load=load_text(cell) if planned.steps else "",
    )
