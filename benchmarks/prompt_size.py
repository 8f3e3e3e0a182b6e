"""P8: what the model is sent, against what HolmesGPT 0.45 sends for one question.

    python benchmarks/prompt_size.py

Every recorded example and, where it is there, every recorded incident of ../shared goes through the real conversation
with a model that answers wrongly at first, so that the second question is sent too; bodies are counted as the OpenAI
client writes them, by a server on loopback. The peer's bytes were measured on 2026-11-21 with its default toolsets:
34.5 kB for the first request, 253 kB for an investigation of six steps.
"""

import importlib.util
import json
import statistics
from pathlib import Path

from agent.adapters.model.endpoint import parse_endpoint
from agent.adapters.model.openai_chat import OpenAiChat
from agent.app.model_classifier import ModelClassifier
from agent.app.models import model_use
from agent.entrypoints.cli.classified_records import ClassifyInput
from agent.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT.parent / "shared" / "data" / "incidents-dev.jsonl"
FIRST, WHOLE = 34_500, 253_000
BARS = (0.25, 0.05)


def servers():
    spec = importlib.util.spec_from_file_location("model_server", ROOT / "tests" / "model_server.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def records():
    for log in sorted((ROOT / "examples").glob("*/instance.log")):
        yield ClassifyInput(id=log.parent.name, log=log.read_text(), platform="cloud_run", whole_log=True)
    if CORPUS.exists():
        for line in CORPUS.read_text().splitlines():
            row = json.loads(line)
            yield ClassifyInput(id=row["id"], log=row["log"], platform=row["platform"], whole_log=True)


def sizes(module):
    """Bytes of the first body and of all bodies, for each record."""
    for record in records():
        with module.Server(module.answering(lambda _: "no JSON")) as server:
            chat = OpenAiChat([parse_endpoint(server.url)], headers=lambda _: {})
            ModelClassifier("both", chat, model_use(Settings()))(record)
            bodies = [len(json.dumps(q, ensure_ascii=False, separators=(",", ":")).encode()) for q in server.questions]
        yield record.id, bodies[0], sum(bodies)


def main() -> int:
    rows = list(sizes(servers()))
    for what, column, peer, bar in (("first prompt", 1, FIRST, BARS[0]), ("whole incident", 2, WHOLE, BARS[1])):
        bytes_ = [row[column] for row in rows]
        worst = max(rows, key=lambda row: row[column])
        print(
            f"{what}: {len(rows)} incidents, median {statistics.median(bytes_):,.0f} bytes, worst {worst[column]:,} "
            f"({worst[0]}); the peer {peer:,}; ratio median {statistics.median(bytes_) / peer:.1%}, "
            f"worst {worst[column] / peer:.1%} (bar {bar:.0%})"
        )
    good = max(r[1] for r in rows) <= BARS[0] * FIRST and max(r[2] for r in rows) <= BARS[1] * WHOLE
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
