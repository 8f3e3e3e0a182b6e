"""Driver guidellm: https://github.com/vllm-project/guidellm, 0.8.

Its profile ``concurrent`` runs one cell, its profile ``sweep`` all steps of a run of request rates.
"""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from agent.adapters.load.driver_process import DriverProcess, version_of
from agent.adapters.load.request_errors import NO_ANSWER, error_kind
from agent.core.sweep.cell import PlannedCell, RequestRow
from agent.core.sweep.provenance import Driver
from agent.ports.load import LoadOrder, LoadResult
from agent.strict_json import read_object

RESULT: Final = "result.json"
BIGGEST_BYTES: Final = 2**30
MOST_WORKERS: Final = 10  # guidellm's own default


class Guidellm:
    """Runs guidellm; see :class:`agent.ports.load.LoadDriver`."""

    name = Driver.GUIDELLM

    def __init__(self, executable: Path) -> None:
        self._executable = executable

    def version(self) -> str:
        """See the port."""
        return version_of("guidellm", [str(self._executable), "--version"], prefix="guidellm version:")

    def start(self, order: LoadOrder) -> DriverProcess:
        """See the port."""
        workers = min(MOST_WORKERS, order.cell.concurrency or order.cell.requests, os.cpu_count() or 1)
        env = {"GUIDELLM__MAX_WORKER_PROCESSES": str(workers)}
        if Path(order.tokenizer).exists():
            env["HF_HUB_OFFLINE"] = "1"
        return DriverProcess(
            "guidellm",
            [str(self._executable), "run", "--config", "{folder}/order.json", "--disable-console"],
            env=env,
            read=lambda folder: read_result((folder / RESULT).read_bytes()),
            files={"order.json": json.dumps({"spec": _spec(order)}).encode()},
        )


def _spec(order: LoadOrder) -> dict[str, Any]:
    cell = order.cell
    backend: dict[str, Any] = {"kind": "openai_http", "target": order.url, "model": order.served_model}
    backend |= {"request_format": "/v1/completions", "validate_backend": False, "verify": True}
    backend |= {"api_key": order.api_key} if order.api_key else {}
    backend |= {} if order.ignore_eos else {"extras": {"body": {"ignore_eos": False}}}
    constraints: list[dict[str, Any]] = [
        {"kind": "max_requests", "count": cell.warmup_requests + cell.requests},
        {"kind": "max_duration", "seconds": order.limit_s / (cell.steps or 1)},  # of each benchmark
    ]
    constraints += [_over_saturation(cell)] if order.stop_over_saturated else []
    return {
        "backend": backend,
        "profile": _profile(cell),
        "constraints": constraints,
        "tokenizer": {"kind": "hf_auto", "model": order.tokenizer},
        "data": [
            {"kind": "synthetic_text", "prompt_tokens": cell.prompt_tokens, "output_tokens": cell.output_tokens},
        ],
        "seed": {"kind": "static", "value": order.seed},
        "outputs": [{"kind": "json", "path": f"{{folder}}/{RESULT}"}],
    }


def _profile(cell: PlannedCell) -> dict[str, Any]:
    if cell.steps:
        return {"kind": "sweep", "sweep_size": cell.steps, "strategy_type": "constant"}
    return {"kind": "concurrent", "streams": [cell.concurrency]}


def _over_saturation(cell: PlannedCell) -> dict[str, Any]:
    """Of a run of request rates it ends the higher rates too."""
    return {"kind": "over_saturation", "mode": "enforce"} | ({"stopping_scope": "all"} if cell.steps else {})


def read_result(raw: bytes) -> LoadResult:
    """Return what a result of guidellm 0.8 says; of more than one benchmark the first has the others with it.

    Raises:
        InputRejected, KeyError, TypeError, ValueError, IndexError: It is not of that form.
    """
    found = read_object(raw, what="result of guidellm", limit=BIGGEST_BYTES, allow_infinite=True)
    first, *following = (_benchmark(each) for each in found["benchmarks"])
    return first.with_(following=tuple(following))


def _benchmark(found: dict[str, Any]) -> LoadResult:
    requests = found["requests"]
    ended = [*requests["successful"], *requests["errored"]]
    began = min((_began(row) for row in ended), default=float(found["start_time"]))
    rows = sorted((_row(row, began) for row in ended), key=lambda row: row.started_s)
    ended_by = found.get("scheduler_state", {}).get("end_queuing_constraints", {})
    return LoadResult(
        rows=tuple(rows),
        unfinished=len(requests["incomplete"]),
        over_saturated="over_saturation" in ended_by,
        began_at=datetime.fromtimestamp(began, tz=UTC),
        rate=found.get("config", {}).get("strategy", {}).get("rate"),
    )


def _began(row: dict[str, Any]) -> float:
    timings = row["info"]["timings"]
    return float(timings["request_start"] or timings["resolve_start"])


def _row(row: dict[str, Any], began: float) -> RequestRow:
    timings, start = row["info"]["timings"], _began(row)
    first, last = timings["first_token_iteration"], timings["last_token_iteration"]
    end = float(last or timings["request_end"] or timings["resolve_end"])
    tokens = int(row["output_metrics"]["text_tokens"] or 0)
    said = row["info"]["error"]
    error = error_kind(str(said)) if said is not None else NO_ANSWER if first is None or tokens == 0 else ""
    return RequestRow(
        started_s=start - began,
        ttft_s=first - start if first is not None else None,
        latency_s=end - start,
        itl_s=(last - first) / (tokens - 1) if first is not None and last is not None and tokens > 1 else None,
        prompt_tokens=int(row["input_metrics"]["text_tokens"] or 0),
        output_tokens=tokens,
        error=error,
    )
