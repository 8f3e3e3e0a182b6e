"""Recorded start-ups asked as questions, and how far the answers are off."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from agent.app.fit_answers import FitAnswers
from agent.errors import InputRejected
from agent.fit.bounds import GIB
from agent.fit.question import question_from

HERE = Path(__file__).parent
NOTES = json.loads((HERE / "observed.json").read_text())
DATA = Path(__file__).parents[4] / "shared" / "data"
PRINTED = (
    "gpu_memory_utilization", "max_model_len", "kv_cache_dtype", "max_num_seqs", "max_num_batched_tokens",
    "enforce_eager", "cpu_offload_gb", "language_model_only", "cudagraph_capture_max",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One recorded start-up beside its prediction; errors are shares, None where nothing was printed."""

    id: str
    model: str
    accelerator: str | None
    outcome: str
    fits: bool | None
    reason: str
    weights: float | None = None
    pool_tokens: float | None = None
    end: float | None = None
    inside: bool | None = None
    specified: bool = False
    exceptions: tuple[str, ...] = field(default=())

    def counts(self, promise: str) -> bool:
        return promise not in self.exceptions


def compare(row, catalogue) -> Compared | None:
    """Ask the row's question; None where its model is not named well enough to be looked up."""
    name = NOTES["models"].get(row["model"])
    if name is None:
        return None
    card = NOTES["accelerators"].get(row["gpu"] or "")
    plain = {
        "model": name,
        "accelerator": card or "nvidia-h100-80gb",
        "count": max(row["gpu_count"], row["tp"]),
        "vllm": version_of(row),
    }
    answers = FitAnswers(catalogue=catalogue, find_model=catalogue.models.find, shapes=())
    try:
        report = answers.fit(question_from({**plain, "flags": flags_of(row)}))
        given = _given_pool(row, plain, answers)
    except InputRejected:
        return None
    end, inside = _end_to_end(row, report) if card else (None, None)
    known = row["flags"]
    return Compared(
        id=row["id"],
        model=name,
        accelerator=card,
        outcome=row["outcome"],
        fits=report.fits if card else None,
        reason=report.reason.value,
        weights=_off(report.weights_bytes.best / GIB, row["weights_gib"]),
        pool_tokens=given,
        end=end,
        inside=inside,
        specified=card is not None
        and known["gpu_memory_utilization"] is not None
        and known["max_model_len"] is not None
        and "+" not in row["model"]
        and "drafter" not in row["model"],
        exceptions=tuple(NOTES["exceptions"].get(row["id"], {}).get("promise", ())),
    )


def flags_of(row, *, pool: bool = False) -> str:
    words = [f"--tensor-parallel-size {row['tp']}"] if row["tp"] > 1 else []
    for key in PRINTED:
        value = row["flags"].get(key)
        if value is None:
            continue
        name = "--max-cudagraph-capture-size" if key == "cudagraph_capture_max" else "--" + key.replace("_", "-")
        words.append(name if value is True else f"{name} {str(value).removesuffix(' (inferred)')}")
    if re.search(r"MTP|draft", row["model"]):
        words.append('--speculative-config \'{"method":"mtp","model":"unknown/drafter","num_speculative_tokens":4}\'')
    words.append(NOTES["flags"].get(row["id"], ""))
    if pool:
        words.append(f"--kv-cache-memory-bytes {int(row['available_kv_gib'] * GIB)}")
    elif row["flags"].get("kv_cache_memory_bytes"):
        words.append(f"--kv-cache-memory-bytes {int(float(row['flags']['kv_cache_memory_bytes'].split()[0]) * GIB)}")
    return " ".join(words)


def version_of(row) -> str | None:
    told = NOTES["versions"].get(row["id"])
    version = told[0] if told else row["vllm_version"]
    return version if version and version[0].isdigit() else None


def _given_pool(row, plain, answers) -> float | None:
    if not row["kv_tokens"] or not row["available_kv_gib"] or row["available_kv_gib"] <= 0:
        return None
    report = answers.fit(question_from({**plain, "flags": flags_of(row, pool=True)}))
    return _off(report.kv_tokens.best, row["kv_tokens"])


def _end_to_end(row, report) -> tuple[float | None, bool | None]:
    if row["available_kv_gib"] and row["available_kv_gib"] > 0 and report.kv_cache_bytes:
        pool, seen = report.kv_cache_bytes, row["available_kv_gib"] * GIB
        return _off(pool.best, seen), pool.low - 0.005 * GIB <= seen <= pool.high + 0.005 * GIB
    for key, value in (("kv_tokens", report.kv_tokens), ("num_gpu_blocks", report.num_gpu_blocks)):
        if row[key] and value:
            return _off(value.best, row[key]), value.low <= row[key] <= value.high
    return None, None


def _off(predicted: float, seen: float | None) -> float | None:
    return predicted / seen - 1 if seen else None


def rows():
    return json.loads((DATA / "observations-dev.json").read_text())


def table(compared: list[Compared]) -> str:
    """The rows that a promise leaves out, as the guide shows them."""
    lines = [
        "| row | model | left out of | weights | tokens of the printed pool | end to end | why |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in compared:
        note = NOTES["exceptions"].get(each.id)
        if note is None or not note["promise"]:
            continue
        figures = " | ".join(
            "" if value is None else f"{100 * value:+.1f} %" for value in (each.weights, each.pool_tokens, each.end)
        )
        lines.append(f"| {each.id} | {each.model} | {', '.join(note['promise'])} | {figures} | {note['reason']} |")
    return "\n".join(lines)
