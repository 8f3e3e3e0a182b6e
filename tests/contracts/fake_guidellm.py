"""Takes the place of the guidellm program: reads the real order, writes a result in the real form, sends nothing.

The server that it pretends to measure answers ``slots`` requests at once. ``script.json`` beside the wrapper says what
happens: ``slots``, ``step_s``, ``takes_s``, ``hangs_from`` (which order), and ``end``: good, crash, garbage, hang, errors,
unfinished, saturated (after half of the requests, or ``saturated_after``); ``saturated_at`` says at which rate of a run of
request rates; ``fails_from`` says from which order on, ``every`` which requests fail with the text ``error``;
``loses`` how many requests the result does not mention.
"""

import heapq
import json
import subprocess
import sys
import time
from pathlib import Path

VERSION = "0.8.1"
PLAIN = {
    "slots": 4,
    "step_s": 0.01,
    "takes_s": 0,
    "end": "good",
    "hangs_from": 999,
    "fails_from": 1,
    "every": 1,
    "saturated_at": 0,
    "saturated_after": 0,
    "loses": 0,
    "error": "HTTPStatusError(\"Client error '401 Unauthorized' for url 'x'\")",
}


def install(folder: Path, **script) -> Path:
    """Lay the program and its script into a folder; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "guidellm"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).resolve()} {folder} "$@"\n')
    program.chmod(0o755)
    (folder / "script.json").write_text(json.dumps(PLAIN | script))
    return program


def simulate(
    users: int, slots: int, count: int, service_s: float, rate: float | None = None
) -> list[tuple[float, float]]:
    """Return (sent, answered from) of each request: so many users, each with one in flight; or sent at a rate."""
    ready, free = [0.0] * users, [0.0] * slots
    found = []
    for number in range(count):
        sent = heapq.heappop(ready) if rate is None else number / rate
        begins = max(sent, heapq.heappop(free))
        heapq.heappush(free, begins + service_s)
        heapq.heappush(ready, begins + service_s)
        found.append((sent, begins))
    return found


def main() -> int:
    folder = Path(sys.argv[1])
    script = json.loads((folder / "script.json").read_text())
    if sys.argv[2:] == ["--version"]:
        print(f"guidellm version: {VERSION}")
        return 0
    order = json.loads(Path(sys.argv[sys.argv.index("--config") + 1]).read_text())["spec"]
    with (folder / "orders.jsonl").open("a") as file:
        file.write(json.dumps(order) + "\n")
    orders = (folder / "orders.jsonl").read_text().count("\n")
    if script["end"] == "hang" or orders >= script["hangs_from"]:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        (folder / "child").write_text(str(child.pid))
        time.sleep(600)
    if orders < script["fails_from"]:
        script["end"] = "good"
    time.sleep(script["takes_s"])
    if script["end"] == "crash":
        print("Traceback (most recent call last):\nRuntimeError: no tokenizer in 'here'", file=sys.stderr)
        return 1
    path = Path(order["outputs"][0]["path"])
    path.write_text("{" if script["end"] == "garbage" else json.dumps(result(order, script)))
    return 0


def result(order: dict, script: dict) -> dict:
    """One benchmark of the profile ``concurrent``; of ``sweep`` one for each strategy, the rates as guidellm sets them."""
    if order["profile"]["kind"] != "sweep":
        return {"benchmarks": [benchmark(order, script, order["profile"]["streams"][0])]}
    count, size = order["constraints"][0]["count"], order["profile"]["sweep_size"]
    service_s = order["data"][0]["output_tokens"] * script["step_s"]
    alone, most = 1 / service_s, script["slots"] / service_s
    rates = [alone + (most - alone) * number / (size - 2) for number in range(1, size - 1)]
    made = [benchmark(order, script, 1), benchmark(order, script, count)]
    made[0]["config"] = {"strategy": {"type_": "synchronous"}}
    made[1]["config"] = {"strategy": {"type_": "throughput", "max_concurrency": 512}}
    for number, rate in enumerate(rates, start=1):
        ends = {"end": "saturated"} if number == script["saturated_at"] else {}
        made.append(benchmark(order, script | ends, count, rate=rate))
        made[-1]["config"] = {"strategy": {"type_": "constant", "rate": rate}}
        if (
            made[-1]["scheduler_state"]["end_queuing_constraints"].get("over_saturation", {}).get("stopping_scope")
            == "all"
        ):
            break
    return {"benchmarks": made}


def benchmark(order: dict, script: dict, users: int, rate: float | None = None) -> dict:
    data, step = order["data"][0], script["step_s"]
    tokens, count = data["output_tokens"], order["constraints"][0]["count"]
    epoch, good, errored = time.time(), [], []
    slots = script["slots"]
    for number, (sent, begins) in enumerate(simulate(users, slots, count, tokens * step, rate)):
        failed = script["end"] == "errors" and number % script["every"] == 0
        first, last = epoch + begins + step, epoch + begins + tokens * step
        timings = {
            "request_start": epoch + sent,
            "resolve_start": epoch + sent,
            "first_token_iteration": None if failed else first,
            "last_token_iteration": None if failed else last,
            "request_end": None if failed else last,
            "resolve_end": last,
        }
        row = {
            "info": {"timings": timings, "error": script["error"] if failed else None},
            "input_metrics": {"text_tokens": data["prompt_tokens"]},
            "output_metrics": {"text_tokens": 0 if failed else tokens},
        }
        (errored if failed else good).append(row)
    ended = {"successful": good, "errored": errored, "incomplete": []}
    if script["loses"]:  # real guidellm lacked 1 to 8 of 40, and said nothing of them
        ended["successful"] = good[: -script["loses"]]
    if script["end"] == "unfinished":
        ended = {"successful": [], "errored": [], "incomplete": good[:users]}
    state = {"end_queuing_constraints": {"max_requests": {}}}
    asked = [each for each in order["constraints"] if each["kind"] == "over_saturation" and each["mode"] == "enforce"]
    if script["end"] == "saturated" and asked:
        half = script["saturated_after"] or len(good) // 2
        ended = {"successful": good[:half], "errored": [], "incomplete": good[half : half + users]}
        scope = {"stopping_scope": asked[0].get("stopping_scope", "current")}
        state = {"end_queuing_constraints": {"over_saturation": scope}}
    return {"start_time": epoch, "requests": ended, "scheduler_state": state}


if __name__ == "__main__":
    sys.exit(main())
