"""A real Prometheus and a real Alertmanager on loopback: `make tools` fetches Debian's under CI=true, into .prometheus."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from tests.free_port import free_port
from tests.loopback import Loopback
from tests.outside import ROOT, absent
from tests.waiting import until

OWN = ROOT / ".prometheus" / "usr"
NAMES = {"alertmanager": ("prometheus-alertmanager", "alertmanager")}


def program(name: str) -> str:
    """Return where a program of Prometheus stands; the test is skipped where it is absent, or fails under REQUIRE_ALL."""
    called = NAMES.get(name, (name,))
    own = (OWN / "bin" / each for each in called)
    found = next((str(path) for path in own if path.exists()), None) or next(
        filter(None, map(shutil.which, called)), None
    )
    if found is None:
        absent(f"{name}: apt-get install prometheus prometheus-alertmanager, or make .prometheus")
    return found


def read(url: str) -> str:
    with urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def answers(url: str) -> bool:
    try:
        read(url)
    except (URLError, OSError):
        return False
    return True


@contextmanager
def running(words: list[str], log: Path, ready: str, cwd: Path | None = None) -> Iterator[None]:
    """Run a program until the block ends; it is ready when that address answers."""
    with log.open("w") as out, subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT, cwd=cwd) as process:
        try:
            until(lambda: process.poll() is not None or answers(ready), log.read_text, limit_s=60)
            assert process.poll() is None, log.read_text()
            yield
        finally:
            process.terminate()
            process.wait(timeout=30)


class Prometheus:
    """Questions to a running Prometheus."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def api(self, path: str, **arguments: str) -> dict:
        return json.loads(read(f"{self.url}/api/v1/{path}?{urlencode(arguments)}"))["data"]

    def query(self, expression: str) -> list[dict]:
        return self.api("query", query=expression)["result"]

    def value(self, expression: str) -> float | None:
        found = self.query(expression)
        return float(found[0]["value"][1]) if found else None


@contextmanager
def prometheus(folder: Path, config: Path) -> Iterator[Prometheus]:
    port = free_port()
    words = [
        program("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn",
    ]  # fmt: skip
    with running(words, folder / "prometheus.log", f"http://127.0.0.1:{port}/-/ready"):
        yield Prometheus(port)


@contextmanager
def alertmanager(folder: Path, config: Path, port: int) -> Iterator[None]:
    words = [
        program("alertmanager"), f"--config.file={config}", f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=", "--log.level=warn",
    ]  # fmt: skip
    templates = OWN / "share" / "prometheus" / "alertmanager"
    cwd = templates if templates.is_dir() else None
    with running(words, folder / "alertmanager.log", f"http://127.0.0.1:{port}/-/ready", cwd):
        yield


class Exporter(Loopback):
    """Serves one page of metrics, such as a vLLM server's, which a test may change."""

    def __init__(self) -> None:
        self.text = ""
        super().__init__(
            lambda _: (200, self.text.encode(), {"Content-Type": "text/plain; version=0.0.4"}), methods=["GET"]
        )
