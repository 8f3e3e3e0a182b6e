"""Driver vllm: ``vllm bench serve`` of vLLM 0.32, random prompts, one run for each cell."""

from datetime import UTC, datetime
from itertools import starmap
from pathlib import Path
from typing import Any, Final

from agent.adapters.load.driver_process import DriverProcess, version_of
from agent.adapters.load.request_errors import NO_ANSWER, error_kind
from agent.core.sweep.cell import RequestRow
from agent.core.sweep.provenance import Driver
from agent.errors import InputRejected
from agent.ports.load import LoadOrder, LoadResult
from agent.strict_json import read_object

RESULT: Final = "result.json"
BIGGEST_BYTES: Final = 2**30
_LISTS: Final = ("start_times", "ttfts", "itls", "latencies", "input_lens", "output_lens", "errors")


class VllmBench:
    """Runs ``vllm bench serve``; see :class:`agent.ports.load.LoadDriver`.

    It knows no limit in time: who runs it stops it.
    """

    name = Driver.VLLM

    def __init__(self, executable: Path) -> None:
        self._executable = executable

    def version(self) -> str:
        """See the port; asked of its distribution, for `vllm --version` takes eight seconds."""
        python = self._executable.with_name("python")
        code = "from importlib.metadata import version as v; print('vllm version:', v('vllm'))"
        return version_of("vllm bench serve", [str(python), "-c", code], prefix="vllm version:")

    def start(self, order: LoadOrder) -> DriverProcess:
        """See the port."""
        if order.cell.steps:
            raise InputRejected(
                "the request rates were not measured",
                why="vllm bench serve has no run that finds them",
                hint="use --driver guidellm, or remove --rates",
            )
        env = {"VLLM_NO_USAGE_STATS": "1", **({"OPENAI_API_KEY": order.api_key} if order.api_key else {})}
        if Path(order.tokenizer).exists():
            env["HF_HUB_OFFLINE"] = "1"
        return DriverProcess(
            "vllm bench serve",
            [str(self._executable), "bench", "serve", *_words(order)],
            env=env,
            read=lambda folder: read_result((folder / RESULT).read_bytes()),
        )


def _words(order: LoadOrder) -> list[str]:
    cell = order.cell
    said = {
        "backend": "openai",
        "base-url": order.url,
        "model": order.served_model,
        "tokenizer": order.tokenizer,
        "dataset-name": "random",
        "random-input-len": cell.prompt_tokens,
        "random-output-len": cell.output_tokens,
        "num-prompts": cell.warmup_requests + cell.requests,
        "max-concurrency": cell.concurrency,
        "seed": order.seed,
        "ready-check-timeout-sec": 0,
        "result-dir": "{folder}",
        "result-filename": RESULT,
    }
    switches = ["--save-result", "--save-detailed", "--disable-tqdm", *(["--ignore-eos"] if order.ignore_eos else [])]
    return [*(word for name, value in said.items() for word in (f"--{name}", str(value))), *switches]


def read_result(raw: bytes) -> LoadResult:
    """Return what a detailed result of ``vllm bench serve`` says.

    Raises:
        InputRejected, KeyError, TypeError, ValueError: It is not of that form.
    """
    found = read_object(raw, what="result of vllm bench serve", limit=BIGGEST_BYTES, allow_infinite=True)
    columns = [found[name] for name in _LISTS]
    began = min(map(float, found["start_times"]))
    made = starmap(lambda *cells: _row(dict(zip(_LISTS, cells, strict=True)), began), zip(*columns, strict=True))
    rows = sorted(made, key=lambda row: row.started_s)
    ended_at = datetime.strptime(found["date"], "%Y%m%d-%H%M%S").astimezone(UTC)
    took = max((row.started_s + row.latency_s for row in rows), default=0.0)
    return LoadResult(rows=tuple(rows), began_at=datetime.fromtimestamp(ended_at.timestamp() - took, tz=UTC))


def _row(row: dict[str, Any], began: float) -> RequestRow:
    tokens, gaps = int(row["output_lens"] or 0), [float(gap) for gap in row["itls"] or ()]
    said = str(row["errors"] or "").strip()
    good = not said and tokens > 0 and bool(row["ttfts"])
    return RequestRow(
        started_s=float(row["start_times"]) - began,
        ttft_s=float(row["ttfts"]) if good else None,
        latency_s=float(row["latencies"]),
        itl_s=sum(gaps) / (tokens - 1) if good and tokens > 1 else None,
        prompt_tokens=int(row["input_lens"] or 0),
        output_tokens=tokens,
        error="" if good else error_kind(said.splitlines()[-1]) if said else NO_ANSWER,
    )
