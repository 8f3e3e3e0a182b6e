"""Real load generators against servers whose knee is known: a scripted one, and vLLM on this CPU with a tiny model.

Run by `make ci-extra`; `make load-driver` installs the generator, `--vllm` takes the environment of `make lab`:
`python -m tools.load_check [--vllm]`. A sweep must find the knee that the server has, else exit 1.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.contracts.load_server import LoadServer
from tests.contracts.test_load import write_tokenizer
from tests.waiting import until
from tools.lab_environment import MODELS, VLLM, set_up

ROOT = Path(__file__).resolve().parents[1]
DRIVERS = ROOT / ".venv-load"
AGENT = Path(sys.executable).parent / "sre-agent"
SLOTS = 4
START_S = 240.0
LAYERS = 48
ENV = dict(os.environ)  # noqa: TID251 - passed on to what is run


def sweep(state: Path, url: str, tokenizer: Path, *words: str) -> dict[str, Any]:
    """Measure a server with the real command and the real generator; return what `sweep show` finds."""
    (state / "drivers").parent.mkdir(parents=True, exist_ok=True)
    if not (state / "drivers").exists():
        (state / "drivers").symlink_to(DRIVERS)
    env = {**ENV, "STORE": f"sqlite:{state}"}
    out = str(state / "out")
    shutil.rmtree(out, ignore_errors=True)
    said = [
        "--url",
        url,
        "--model",
        "tiny",
        "--tokenizer",
        str(tokenizer),
        "--out",
        out,
        "--flags",
        f"--max-num-seqs {SLOTS}",
    ]
    subprocess.run([str(AGENT), "sweep", *said, *words], env=env, check=True)
    shown = subprocess.run([str(AGENT), "sweep", "show", out, "--json"], env=env, check=True, capture_output=True)
    return json.loads(shown.stdout)  # type: ignore[no-any-return]


def knee(found: dict[str, Any]) -> tuple[float, str]:
    """Return where requests begin to wait, and the limit that is named."""
    plateau = found["contexts"][0]["plateau"]
    limits = plateau["limits"] or [{"requests": 0, "bound": "none"}]
    return float(limits[0]["requests"]), str(limits[0]["bound"])


@contextmanager
def vllm(port: int) -> Iterator[str]:
    """Serve the lab's tiny Llama with the slots that the flag gives it, made so slow that its client keeps up.

    With its own two layers a step takes 3 ms, and on two cores the tokens of an answer then arrive in one piece; the
    engine is held to one core, so that the front of the server and the load generator have the other.
    """
    words = [str(VLLM), "serve", str(MODELS / "real-llama"), "--enforce-eager", "--max-model-len", "2048"]
    words += ["--load-format", "dummy", "--hf-overrides", json.dumps({"num_hidden_layers": LAYERS})]
    words += ["--max-num-seqs", str(SLOTS), "--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(port)]
    env = {**ENV, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    env["VLLM_CPU_OMP_THREADS_BIND"] = "0"
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until(lambda: _ready(url), limit_s=START_S)
            yield url
        finally:
            server.terminate()
            server.wait()


def lab_is_there() -> bool:
    """Install vLLM for the CPU where it is not; that it cannot be installed here is said."""
    try:
        set_up({"real-llama"})
    except subprocess.CalledProcessError as error:
        print(f"skipped: vLLM for the CPU could not be set up ({' '.join(map(str, error.cmd))[:120]})")
        return False
    return True


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def main() -> int:
    """Run what can be run here.

    Returns:
        0: every knee was found; 1: one was not.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vllm", action="store_true", help="real vLLM on this CPU too (2.5 GB, some minutes)")
    parser.add_argument("--port", type=int, default=8321)
    args = parser.parse_args()
    if not DRIVERS.exists():
        print("skipped: no load generator is installed (make load-driver)")
        return 0
    found = {}
    sizes = ("--concurrency", "2,4,8,12", "--context", "112", "--output-tokens", "16", "--requests", "48")
    with tempfile.TemporaryDirectory() as folder, LoadServer(slots=SLOTS, step_s=0.01) as server:
        write_tokenizer(Path(folder) / "tokenizer")
        found["scripted server"] = knee(sweep(Path(folder) / "state", server.url, Path(folder) / "tokenizer", *sizes))
    if args.vllm and lab_is_there():
        with tempfile.TemporaryDirectory() as folder, vllm(args.port) as url:
            sizes = ("--concurrency", "2,4,8,12", "--context", "192", "--output-tokens", "32", "--requests", "32")
            found["vLLM"] = knee(sweep(Path(folder) / "state", url, MODELS / "real-llama", *sizes))
    for name, (requests, bound) in found.items():
        print(f"{name}: {SLOTS} slots, found {requests:g} by {bound}")
    return 0 if all(pair == (SLOTS, "max_num_seqs") for pair in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
