"""P4: process start to first answer of the intake function, beside one that imports firestore and writes a document.

Run: python benchmarks/cold_start.py [--pairs 9] [--store sqlite|firestore]

Both run under functions-framework as they are deployed (gunicorn, one worker), in turns, against Google's own
emulators; the first answer is that to a pushed log entry, which ours has then stored and told the next function of.
With ``--store sqlite`` ours pays no Firestore import; with ``--store firestore`` it does what it does in the cloud.
Both are compiled beforehand, as the cloud's build leaves them: packages by pip, the function's own files as
infra/modules/function sets it (hash-based, so that the image's file times do not make them stale).
"""

import argparse
import base64
import compileall
import contextlib
import importlib.util
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from py_compile import PycInvalidationMode

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"
PROMISED = 1.2
PEER = """
import functions_framework
from google.cloud import firestore

database = None

@functions_framework.http
def peer(request):
    global database
    if database is None:
        database = firestore.Client(project="example-project")
    database.collection("events").document().set({"body": request.get_data(as_text=True)})
    return "ok", 200
"""


def beside(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def built(folder: Path) -> Path:
    """Stage and compile the intake function as deploy.sh and the cloud's build do; return its file."""
    stage = beside(ROOT / "tools" / "stage_functions.py").stage
    source = stage("on_log_event", folder / "build") / "main.py"
    peer = folder / "peer" / "main.py"
    peer.parent.mkdir()
    peer.write_text(PEER)
    for part in (source.parent, peer.parent):
        compileall.compile_dir(part, quiet=1, force=True, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return source


class Firestore:
    """Google's Firestore emulator, started with java directly."""

    def __init__(self, port: int, log: Path) -> None:
        sdk = Path(shutil.which("gcloud") or sys.exit("gcloud with its emulators is needed")).resolve().parents[1]
        jar = sdk / "platform" / "cloud-firestore-emulator" / "cloud-firestore-emulator.jar"
        main = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"
        command = ["java", "-cp", str(jar), main, "start", "--host=127.0.0.1", f"--port={port}"]
        self.host = f"127.0.0.1:{port}"
        with log.open("wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out)
        listening(port, 60)

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(20)


def listening(port: int, limit_s: float) -> None:
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.01)
    sys.exit(f"nothing listens on {port}")


def body(number: int) -> bytes:
    entry = json.loads((EXAMPLE / "events.jsonl").read_text().splitlines()[0]) | {"insertId": f"cold{number}"}
    data = base64.b64encode(json.dumps(entry).encode()).decode()
    return json.dumps({"message": {"data": data, "messageId": str(number)}, "subscription": "s"}).encode()


def first_answer_s(target: str, source: Path, environ: dict[str, str], port: int, number: int) -> float:
    """Start a function, ask until it answers, end it; return the seconds from start to answer."""
    command = [sys.executable, "-m", "functions_framework", "--target", target, "--source", str(source)]
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", data=body(number), method="POST")
    began = time.perf_counter()
    log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process that writes it
    command += ["--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, env=environ, stderr=log, cwd=source.parent)
    try:
        while True:
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    assert answer.status == 200
                    return time.perf_counter() - began
            except urllib.error.HTTPError as error:
                log.seek(0)
                sys.exit(f"{target} answered {error.code}: {log.read().decode()[-3000:]}")
            except OSError:
                if process.poll() is not None:
                    log.seek(0)
                    sys.exit(f"{target} ended: {log.read().decode()[-3000:]}")
                time.sleep(0.002)
    finally:
        process.terminate()
        process.wait(20)


def main() -> int:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--pairs", type=int, default=9)
    reader.add_argument("--store", choices=["sqlite", "firestore"], default="sqlite")
    args = reader.parse_args()
    tools = beside(ROOT / "tests" / "pubsub_emulator.py")
    with tempfile.TemporaryDirectory(prefix="cold-start-") as name, contextlib.ExitStack() as open_:
        folder = Path(name)
        pubsub = tools.Emulator(folder / "pubsub.log")
        open_.callback(pubsub.stop)
        firestore = Firestore(tools.free_port(), folder / "firestore.log")
        open_.callback(firestore.stop)
        pubsub.topic("sre-incidents")
        source = built(folder)
        shared = dict(os.environ)  # noqa: TID251 - child processes' environment
        shared |= {"FIRESTORE_EMULATOR_HOST": firestore.host, "PUBSUB_EMULATOR_HOST": pubsub.host}
        shared |= {"PYTHONPATH": "", "BUS": f"pubsub:{tools.PROJECT}", "PLATFORM": f"rehearsal:{EXAMPLE}"}
        shared |= {"SERVICES": str(EXAMPLE / "services.toml")}
        times: dict[str, list[float]] = {"peer": [], "ours": []}
        for number in range(args.pairs + 1):
            store = (
                f"sqlite:{folder / f'state{number}'}"
                if args.store == "sqlite"
                else f"firestore:{tools.PROJECT}{number}"
            )
            ours = shared | {"STORE": store}
            peer_s = first_answer_s("peer", folder / "peer" / "main.py", shared, tools.free_port(), number)
            ours_s = first_answer_s("on_log_event", source, ours, tools.free_port(), number)
            if number:  # the first pair fills the caches of the disk
                times["peer"].append(peer_s)
                times["ours"].append(ours_s)
        return report(times, args.store)


def report(times: dict[str, list[float]], store: str) -> int:
    ratios = [ours / peer for ours, peer in zip(times["ours"], times["peer"], strict=True)]
    for name, seconds in times.items():
        print(f"{name:5} {statistics.median(seconds):.3f} s median of {len(seconds)}, best {min(seconds):.3f} s")
    ratio = statistics.median(ratios)
    print(f"P4: {ratio:.2f}x the peer (median of {len(ratios)} pairs, store {store}; promised <= {PROMISED}x)")
    return 0 if ratio <= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
