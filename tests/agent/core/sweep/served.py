"""A server made by hand whose limit is known: slots, a prefill, a time per token, and a closed loop of clients."""

import heapq
import random
from datetime import UTC, datetime

from agent.core.sweep.cell import Bound, Cell, Outcome, PlannedCell, Predicted, RequestRow, measured_cell
from agent.core.sweep.provenance import Driver, Limits, Provenance

GRID = (1, 2, 4, 8, 16, 32, 64)
AT = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def rows_of(concurrency, slots, *, prefill_s=0.02, token_s=0.01, tokens=32, prompt=96, requests=200, seed=1, failing=0,
            bundled=0.0):  # fmt: skip
    """Return the requests of a closed loop: first come first served, each prefilled and then decoded.

    Of the share ``bundled`` the client sees all tokens at the end, within 2 ms.
    """
    chance, path = random.Random(seed), random.Random(seed)
    free, clients, rows = [0.0] * slots, [0.0] * concurrency, []
    for number in range(requests):
        asked = heapq.heappop(clients)
        begun = max(asked, heapq.heappop(free))
        first = begun + prefill_s * chance.uniform(0.9, 1.1)
        end = first + (tokens - 1) * token_s * chance.uniform(0.9, 1.1)
        heapq.heappush(free, end)
        heapq.heappush(clients, end + 0.0005)
        if number < failing:
            rows.append(RequestRow(started_s=asked, latency_s=end - asked, error="503"))
            continue
        if path.random() < bundled:
            first = end - 0.002
        itl = (end - first) / (tokens - 1) if tokens > 1 else None
        times = {"started_s": asked, "ttft_s": first - asked, "latency_s": end - asked, "itl_s": itl}
        rows.append(RequestRow(**times, prompt_tokens=prompt, output_tokens=tokens))
    return tuple(rows)


def provenance(**more):
    known = {
        "sweep": "s-1", "service": "chat", "endpoint": "http://127.0.0.1:8000", "model": "example/tiny", "served_model": "tiny",
        "platform": "host", "region": "europe-west4", "accelerator": "nvidia-l4", "image": "vllm/vllm-openai@sha256:1f0c",
        "flags": "--max-num-seqs 8", "vllm": "0.32.0", "driver": Driver.GUIDELLM, "driver_version": "0.8.1",
        "started_at": AT, "limits": Limits(max_num_seqs=8, kv_tokens=4096, max_model_len=1024),
    }  # fmt: skip
    return Provenance(**(known | more))


def sweep_of(slots, *, contexts=(128,), grid=GRID, tokens=32, predicted=None, failing=0, rows=None, **made_of):
    """Return the cells of a sweep of such a server, and the raw rows by cell."""
    made, cells, all_rows = provenance(**made_of), [], {}
    for context in contexts:
        for concurrency in grid:
            planned = PlannedCell(
                context_tokens=context, output_tokens=tokens, concurrency=concurrency, requests=200, warmup_requests=8
            )
            found = rows_of(
                concurrency, slots, tokens=tokens, prompt=context - tokens, prefill_s=context / 6400,
                failing=failing if concurrency == grid[-1] else 0, **(rows or {}),
            )  # fmt: skip
            all_rows[planned.id] = found
            cells.append(
                Cell(
                    provenance=made,
                    planned=planned,
                    predicted=predicted or Predicted(
                        knee=slots, bound=Bound.MAX_NUM_SEQS, output_tokens_per_s=(80.0, 120.0), duration_s=9.0
                    ),
                    outcome=Outcome.MEASURED,
                    measured=measured_cell(found, began_at=AT, warmup_requests=8),
                )
            )  # fmt: skip
    return tuple(cells), all_rows
