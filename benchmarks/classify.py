"""P1, P2 and the raw lines of R9: finding failure lines against a loop of our own patterns, and against drain3.

    python benchmarks/classify.py [--drain PYTHON] [--storm-lines N]

PYTHON is an interpreter that has drain3; without it one is made in a temporary venv. All sides see the same lines in
the same run; rounds alternate, the ratio is taken pair by pair, and its median counts. Results of the index and of the
loop must be identical, line by line, or the run fails. drain3 masks as in its own example configuration.
"""

import argparse
import json
import random  # noqa: TID251 - a benchmark draws its lines from a seed
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path

from agent.catalogue.load_failures import load_failures
from agent.failures.match.matcher import Matcher, compile_catalogue
from agent.failures.match.phrase import parse_phrase, phrase_pattern
from agent.failures.signature import Role
from agent.failures.text.client_text import without_client_words

LINES = 50_000
LOOP_LINES = 300
ROUNDS = 5

DRAIN = r"""
import json, sys, time
from drain3 import TemplateMiner
from drain3.masking import MaskingInstruction
from drain3.template_miner_config import TemplateMinerConfig
EDGE = "((?<=[^A-Za-z0-9])|^)(%s)((?=[^A-Za-z0-9])|$)"
MASKS = [
    ("([0-9a-f]{2,}:){3,}([0-9a-f]{2,})", "ID"), ("\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}", "IP"),
    ("([0-9a-f]{6,} ?){3,}", "SEQ"), ("([0-9A-F]{4} ?){4,}", "SEQ"), ("0x[a-f0-9A-F]+", "HEX"),
    ("[\\-\\+]?\\d+", "NUM"),
]
lines = json.load(open(sys.argv[1]))
def miner():
    config = TemplateMinerConfig()
    config.profiling_enabled = False
    config.masking_instructions = [MaskingInstruction(EDGE % pattern, name) for pattern, name in MASKS]
    config.masking_instructions.append(MaskingInstruction('(?<=executed cmd )(".+?")', "CMD"))
    return TemplateMiner(config=config)
print("ready", flush=True)
for _ in sys.stdin:
    mine = miner()
    start = time.perf_counter()
    for line in lines:
        mine.add_log_message(line)
    print(json.dumps([time.perf_counter() - start, len(mine.drain.clusters)]), flush=True)
"""


API = "(APIServer pid=1) INFO"
SHAPES: tuple[Callable[[int], str], ...] = (
    lambda i: f'{API}:     10.1.{i % 250}.{i % 99}:{i % 60000} - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    lambda i: f'{API}:     10.1.{i % 250}.{i % 99}:{i % 60000} - "GET /health HTTP/1.1" 200 OK',
    lambda i: (
        f"{API} 08-11 02:14:{i % 60:02d} [loggers.py:257] Engine 000: Avg prompt throughput: {i % 700}.5 tokens/s, "
        f"Avg generation throughput: {i % 99 + 1}.1 tokens/s, Running: {i % 9} reqs, Waiting: 0 reqs, "
        f"GPU KV cache usage: 3.2%, Prefix cache hit rate: {i % 90}.0%"
    ),
    lambda i: f"{API} 08-11 02:14:{i % 60:02d} [logger.py:41] Received request chatcmpl-{i:032x}: params: (n=1)",
    lambda i: f"(EngineCore_DP0 pid={300 + i % 8}) DEBUG 08-11 02:14:{i % 60:02d} [core.py:416] loop active, step {i}",
    lambda i: f"{API} 08-11 02:14:{i % 60:02d} [async_llm.py:269] Added request chatcmpl-{i:032x}.",
    lambda i: f"I0811 02:14:{i % 60:02d}.{i % 999999:06d}    1 server.go:{i % 900}] trace={i:016x} in {i % 1000}ms",
    lambda i: f'{{"level":"info","ts":{1754880000 + i},"msg":"scaled","replicas":{i % 5}}}',
    lambda i: (
        f"Loading safetensors checkpoint shards:  {i % 100}% Completed | {i % 7}/7 [00:{i % 60:02d}<00:09,  2.77s/it]"
    ),
)


def traffic(count: int) -> list[str]:
    """Ten shapes of a server's log, one line in fifty a failure."""
    chance = random.Random(7)
    return [fault(i) if i % 50 == 0 else chance.choice(SHAPES)(i) for i in range(count)]


def fault(i: int) -> str:
    """One line of the storm."""
    return (
        f"(EngineCore_DP0 pid={300 + i % 7}) ERROR 08-11 02:{i // 60 % 60:02d}:{i % 60:02d} [core.py:1266] "
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {i % 900}.50 MiB. "
        f"GPU 0 has a total capacity of 22.05 GiB of which {i % 99}.12 MiB is free."
    )


def hostile(i: int, chance: random.Random, phrases: list[str]) -> str:
    """A line like no other: random words of every length around the two halves of any phrase of the catalogue."""
    piece = phrases[chance.randrange(len(phrases))]
    cut = chance.randrange(4, 60)
    words = f"{chance.getrandbits(64):x} {piece[:cut]} {chance.getrandbits(200):x}"
    return f"{words} {i} {chance.getrandbits(96):x} {piece[cut:]}"


def scanned(matcher: Matcher, line: Callable[[int], str], count: int) -> tuple[float, int, float]:
    """Seconds, failures found, and growth of memory in MiB over blocks of lines; making the lines is not timed."""
    block = 20_000
    before = resident_mib()
    took = 0.0
    found = 0
    for first in range(0, count, block):
        lines = [line(i) for i in range(first, min(first + block, count))]
        start = time.perf_counter()
        found += sum(1 for _ in matcher.troubles(lines))
        took += time.perf_counter() - start
    return took, found, resident_mib() - before


def slow_troubles(matcher: Matcher) -> Callable[[list[str]], list[tuple[int, str]]]:
    """The same answer by a loop over compiled regular expressions: each line, each signature, until one stands.

    Both take the words of clients out of a line first, as a route in an access log.
    """
    order = list(Role)
    failing = {Role.CAUSE, Role.CONSEQUENCE}
    trouble = [c for c in matcher.compiled if c.entry.role in failing and not c.entry.needs_silence]
    trouble.sort(key=lambda c: (-order.index(c.entry.role), c.entry.precedence), reverse=True)
    compiled = [
        (
            c.entry.id,
            [
                re.compile(phrase_pattern(parse_phrase(text), whole_line=c.entry.whole_line), re.ASCII | re.IGNORECASE)
                for text in c.entry.phrases
            ],
            [re.compile(phrase_pattern(parse_phrase(text, at_least=1, fold=False))) for text in c.entry.unless],
            c.skips,
        )
        for c in trouble
    ]

    claims = [
        re.compile(phrase_pattern(parse_phrase(text)), re.ASCII | re.IGNORECASE)
        for c in matcher.compiled
        if c.entry.claims_line
        for text in c.entry.phrases
    ]

    def find(lines: list[str]) -> list[tuple[int, str]]:
        found = []
        for index, line in enumerate(map(without_client_words, lines)):
            if any(claim.search(line) for claim in claims):
                continue
            for name, phrases, vetoes, skips in compiled:
                if any(p.search(line) for p in phrases) and not (
                    any(v.search(line) for v in vetoes) or skips(line.encode())
                ):
                    found.append((index, name))
                    break
        return found

    return find


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def drain_python(folder: Path) -> str:
    venv.create(folder / "venv", with_pip=True)
    python = str(folder / "venv" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", "drain3==0.9.11"], check=True)
    return python


def resident_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drain", help="an interpreter that has drain3")
    parser.add_argument("--storm-lines", type=int, default=1_000_000)
    args = parser.parse_args()

    start = time.perf_counter()
    catalogue = load_failures()
    matcher = compile_catalogue(catalogue.signatures, catalogue.words)
    phrases = [phrase for signature in catalogue.signatures for phrase in signature.phrases]
    ready_s = time.perf_counter() - start
    print(f"catalogue: {len(catalogue.signatures)} signatures, {len(phrases)} phrases, ready in {ready_s:.3f} s")

    lines = traffic(LINES)
    slow = slow_troubles(matcher)
    chance = random.Random(3)
    sample = [*chance.sample(lines, LOOP_LINES), *(hostile(i, chance, phrases) for i in range(LOOP_LINES))]
    fast = [(index, match.signature) for index, match in matcher.troubles(sample)]
    if fast != slow(sample):
        sys.exit("the index and the loop differ")
    print(f"identical results on {len(sample)} lines, {len(fast)} of them troubles")

    few = lines[:LOOP_LINES]
    ratios = []
    for _ in range(ROUNDS):
        ours = seconds(lambda: sum(1 for _ in matcher.troubles(lines))) / len(lines)
        ratios.append(seconds(lambda: slow(few)) / len(few) / ours)
    print(f"P1 loop of own patterns: {statistics.median(ratios):.0f}x (bar 30x), rounds {[round(r) for r in ratios]}")

    with tempfile.TemporaryDirectory() as folder:
        python = args.drain or drain_python(Path(folder))
        data = Path(folder) / "lines.json"
        data.write_text(json.dumps(lines))
        theirs = subprocess.Popen(
            [python, "-c", DRAIN, str(data)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert theirs.stdin
        assert theirs.stdout
        theirs.stdout.readline()
        ratios, known = [], []
        for _ in range(ROUNDS):
            ours = seconds(lambda: sum(1 for _ in matcher.troubles(lines)))
            all_kinds = seconds(lambda: sum(1 for _ in matcher.scan(lines)))
            theirs.stdin.write("go\n")
            theirs.stdin.flush()
            took, _clusters = json.loads(theirs.stdout.readline())
            ratios.append(took / ours)
            known.append(took / all_kinds)
        theirs.stdin.close()
        theirs.wait()
    print(f"P2 drain3 with its example masking: {statistics.median(ratios):.1f}x (bar 10x)")
    print(f"   rounds {[round(r, 1) for r in ratios]}, {len(lines) / ours:,.0f} lines/s here")
    print(f"   with phase and harmless lines named too (scan): {statistics.median(known):.1f}x")

    storm_s, found, grew = scanned(matcher, fault, args.storm_lines)
    print(f"R9 raw storm: {found:,} failures in {storm_s:.2f} s (bar 5 s for 1,000,000), +{grew:.0f} MiB (bar 32)")
    chance = random.Random(11)
    hostile_s, found, grew = scanned(matcher, lambda i: hostile(i, chance, phrases), args.storm_lines)
    print(f"   hostile, all distinct: {found:,} failures, {hostile_s:.2f} s, +{grew:.0f} MiB (bar 64)")
    print(f"   speed of hostile lines: {storm_s / hostile_s:.0%} of the storm's (bar 50 %)")


if __name__ == "__main__":
    main()
