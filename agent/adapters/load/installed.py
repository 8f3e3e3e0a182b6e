"""Which load generators are installed here, and the installation of one in an environment of its own."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from agent.adapters.load.guidellm import Guidellm
from agent.adapters.load.vllm_bench import VllmBench
from agent.core.sweep.provenance import Driver
from agent.errors import DependencyFailed
from agent.ports.load import LoadDriver

GUIDELLM_VERSION: Final = "0.8.1"
CPU_TORCH: Final = "torch==2.13.0+cpu"  # without it pip takes the build for CUDA: 6 GB
NAMES: Final = {Driver.GUIDELLM: "guidellm", Driver.VLLM: "vllm"}
_COMPLETE: Final = ".installed"
_HINT: Final = "install guidellm in an environment of its own (1.5 GB): sre-agent sweep --install-driver"


def find_driver(wanted: Driver | None, drivers: Path) -> LoadDriver:
    """Return a load generator that is installed: in its own environment, else on the PATH; guidellm first.

    Args:
        wanted: Which one; None takes what is there.
        drivers: The folder in which :func:`install_guidellm` installs.

    Raises:
        DependencyFailed: It is not installed; the hint says how to install one.
    """
    for driver in Driver if wanted is None else (wanted,):
        path = _path(driver, drivers)
        if path is not None:
            return Guidellm(path) if driver is Driver.GUIDELLM else VllmBench(path)
    what = "no load generator" if wanted is None else f"load generator {NAMES[wanted]!r}"
    raise DependencyFailed(
        f"{what} was found",
        why=f"neither in {str(drivers)!r} nor on the PATH" if wanted else "neither guidellm nor vllm is installed",
        hint=_HINT if wanted is not Driver.VLLM else "run where vLLM is installed, or take --driver guidellm",
    )


def _path(driver: Driver, drivers: Path) -> Path | None:
    own = drivers / NAMES[driver]
    if (own / _COMPLETE).exists():
        return (own / "bin" / NAMES[driver]).absolute()
    found = shutil.which(NAMES[driver])
    return Path(found) if found is not None else None


def install_guidellm(
    drivers: Path, *, say: Callable[[str], None], packages: Sequence[str] = (CPU_TORCH, f"guidellm=={GUIDELLM_VERSION}")
) -> None:
    """Install guidellm with torch for the CPU, which is a quarter of what it takes by itself.

    Args:
        drivers: The folder for such environments.
        say: Is given each step, in words.
        packages: What pip is asked for.

    Raises:
        DependencyFailed: It could not be installed; nothing half-installed is left.
    """
    folder = drivers / NAMES[Driver.GUIDELLM]
    if (folder / _COMPLETE).exists():
        say(f"guidellm is installed in {folder}")
        return
    say(f"installing {' and '.join(packages)} in {folder} (1.5 GB, some minutes)")
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-q", "install", *packages]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        for words in ([sys.executable, "-m", "venv", "--clear", str(folder)], pip):
            subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True)  # noqa: S603 - no shell
        (folder / _COMPLETE).touch()
    except (OSError, subprocess.CalledProcessError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        said = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error).encode()
        lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.startswith("ERROR")] or [
            str(error)
        ]
        raise DependencyFailed(
            "guidellm was not installed",
            why=lines[-1].removeprefix("ERROR: "),
            hint="let pip find PyTorch's wheels for the CPU (PIP_EXTRA_INDEX_URL), then give the command again",
        ) from error
    say(f"installed; sre-agent sweep takes it from {folder}")
