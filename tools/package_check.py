"""The package as a stranger gets it: built, installed by pip in empty environments, and used from an empty folder.

    python -m tools.package_check [--out dist]

The wheel and the source archive are built. For each Python from 3.11 to 3.13 that is found the wheel is installed with
what it needs; then the first incident is shown, approved and mended from an empty folder. Sizes and the time that an
import takes are printed. Run by `make package`, and by `make test` under CI=true. Exit 1 where something failed.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
EXAMPLE = "gemma4-26b-l4-startup-probe"
INSTALL_S = 400
STEP_S = 240
POLL_S = 3  # each look starts a command, which takes half a second of a processor


def main() -> int:
    """Build, install, use; print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the packages are left")
    out = parser.parse_args().out.resolve()
    with tempfile.TemporaryDirectory(prefix="sre-agent-package-") as scratch:
        try:
            wheel = built(out, Path(scratch))
            for version in PYTHONS:
                python = interpreter(version)
                if python is None:
                    print(f"Python {version}: not installed here, not tried")
                    continue
                place = Path(scratch) / version
                print(f"Python {version}: {installed(wheel, python, place)}")
                print(f"Python {version}: {first_incident(place / 'venv' / 'bin', place / 'empty')}")
        except (AssertionError, subprocess.SubprocessError, OSError) as error:
            print(f"FAILED: {str(error)[-1500:]}")
            return 1
    return 0


def built(out: Path, scratch: Path) -> Path:
    """Build both packages from the files of this checkout alone; return the wheel."""
    tree = scratch / "tree"
    listed = said(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    shutil.rmtree(out, ignore_errors=True)
    said([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(tree)], scratch)
    for path in sorted(out.iterdir()):
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")
    return next(out.glob("*.whl"))  # built from the source archive


def interpreter(version: str) -> str | None:
    """Return a Python of this version that can make environments."""
    for name in (f"python{version}", *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))):
        found = shutil.which(name)
        if (
            found
            and subprocess.run([found, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode
            == 0
        ):
            return found
    return None


def installed(wheel: Path, python: str, place: Path) -> str:
    """Install the wheel with what it needs into an empty environment; return its size and import time."""
    venv = place / "venv"
    said([python, "-m", "venv", str(venv)], ROOT)
    pip = [sys.executable, "-m", "pip", "--python", str(venv), "install", "--quiet", "--disable-pip-version-check"]
    said([*pip, "--no-compile", str(wheel)], ROOT)  # most of it is never imported; what is, is compiled below
    size = sum(path.stat().st_size for path in venv.rglob("*") if path.is_file() and not path.is_symlink())
    said([str(venv / "bin" / "sre-agent"), "--version"], place)
    begun = time.monotonic()
    said([str(venv / "bin" / "sre-agent"), "--version"], place)
    return f"{size / 1e6:.0f} MB installed without bytecode, `sre-agent --version` in {time.monotonic() - begun:.2f} s"


def first_incident(commands: Path, folder: Path) -> str:
    """Start the service in an empty folder, approve its plan, and wait until the incident is over."""
    folder.mkdir()
    (folder / "home").mkdir()
    environ = {"PATH": f"{commands}:/usr/bin:/bin", "HOME": str(folder / "home"), "STORE": "sqlite:state"}
    log = folder / "up.log"
    begun = time.monotonic()
    with log.open("wb") as file:
        words = [str(commands / "sre-agent"), "up", "--port", "0", "--example", EXAMPLE]
        service = subprocess.Popen(words, cwd=folder, env=environ, stdout=file, stderr=subprocess.STDOUT)
    try:
        plan = asked(commands, folder, environ)
        asked_s = time.monotonic() - begun
        said([str(commands / "sre-agent"), "approve", plan, "--wait"], folder, environ)
    except AssertionError as error:
        raise AssertionError(f"{error}; the service said: {log.read_text(errors='replace')[-800:]}") from error
    finally:
        service.send_signal(signal.SIGTERM)
        code = service.wait(timeout=STEP_S)
    assert code == 0, f"the service ended with {code}"
    return f"asked after {asked_s:.0f} s, approved, resolved after {time.monotonic() - begun:.0f} s"


def asked(commands: Path, folder: Path, environ: Mapping[str, str]) -> str:
    """Return the plan when the incident has one to approve."""
    text, until = "", time.monotonic() + STEP_S
    while time.monotonic() < until:
        text = said([str(commands / "sre-agent"), "incidents", "list", "--json"], folder, environ)
        for row in map(json.loads, text.splitlines()):
            if row["phase"] == "ASKED":
                return str(row["plan"])
        time.sleep(POLL_S)
    raise AssertionError(f"no plan was asked about: {text[-400:]}")


def said(words: list[str], folder: Path, environ: Mapping[str, str] | None = None) -> str:
    """Run a command; return what it printed.

    Raises:
        AssertionError: It failed; with its last words.
    """
    env = dict(environ) if environ is not None else {**os.environ, "PYTHONWARNINGS": "ignore"}  # noqa: TID251
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    assert done.returncode == 0, f"{' '.join(words)} ended with {done.returncode}: {done.stderr[-800:]}"
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
