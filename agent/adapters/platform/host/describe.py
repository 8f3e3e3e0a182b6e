"""A command line and a machine as our typed configuration: words verbatim, listed variables, cards by nvidia-smi."""

import contextlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from agent.core.service.container_args import flag_map
from agent.core.service.serving import EnvVar, ServingConfig
from agent.core.value import Value
from agent.errors import InputRejected

CARRIED = ("VLLM_", "HF_HUB_", "TRANSFORMERS_", "CUDA_", "NVIDIA_", "NCCL_", "PYTORCH_", "OMP_", "TORCH", "ROCR_")
HIDDEN = ("TOKEN", "KEY", "SECRET", "PASSWORD", "CREDENTIAL")  # named in the record, never written into it
SMI_S = 10.0
OUTSIDE = "environment of the watcher"


class Card(Value):
    """One accelerator of this machine, as nvidia-smi prints it."""

    name: str
    memory_mib: int


def config_of(
    words: tuple[str, ...],
    environ: Mapping[str, str],
    cards: tuple[Card, ...],
    names: Iterable[str],
    *,
    fewest: int = 2,
) -> ServingConfig:
    """Return the configuration that a command line means on this machine.

    Args:
        words: The operator's words behind ``--``: a program and what it is given.
        environ: The environment that the server will inherit.
        cards: The machine's accelerators; none means that the server runs on the CPU.
        names: Accelerators that the arithmetic knows.
        fewest: How many words a server's command has at least; a script that knows its model needs no second.

    Raises:
        InputRejected: The words are no server's.
    """
    if len(words) < fewest:
        raise InputRejected(
            "nothing is watched",
            why="no server command follows --",
            hint="run: sre-agent watch -- vllm serve MODEL",
        )
    split = program_words(words)
    return ServingConfig(
        command=words[:split],
        args=words[split:],
        env=carried(environ),
        accelerator=accelerator_of(cards[0].name, names) if cards else "cpu",
        accelerator_count=_count(words[split:], cards),
        max_instances=1,
    )


def carried(environ: Mapping[str, str]) -> tuple[EnvVar, ...]:
    """Return the variables that make a difference to vLLM, by name; a secret is named and its value left out."""
    return tuple(
        EnvVar(name=name, secret=OUTSIDE)
        if any(part in name for part in HIDDEN)
        else EnvVar(name=name, value=environ[name])
        for name in sorted(environ)
        if name.startswith(CARRIED)
    )


def cards_here() -> tuple[Card, ...]:
    """Return the NVIDIA cards of this machine; none where nvidia-smi is missing or fails."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        asked = [program, "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=SMI_S, check=True)  # noqa: S603
        return cards_of(done.stdout)
    return ()


def cards_of(printed: str) -> tuple[Card, ...]:
    """Return the cards of ``nvidia-smi --query-gpu=name,memory.total --format=csv,noheader,nounits``."""
    rows = (line.rpartition(",") for line in printed.splitlines())
    return tuple(
        Card(name=name.strip(), memory_mib=int(mib)) for name, _, mib in rows if name and mib.strip().isdigit()
    )


def accelerator_of(printed: str, names: Iterable[str]) -> str:
    """Return the catalogue's name for a card's printed one, or a name of its own shape where none is meant.

    ``NVIDIA A100-SXM4-80GB`` is ``nvidia-a100-80gb``: every part of the catalogue's name stands in the printed one.
    """
    parts = re.findall(r"[a-z0-9]+", printed.lower())
    matching = [n for n in names if n.startswith("nvidia-") and set(n.removeprefix("nvidia-").split("-")) <= set(parts)]
    if matching:
        return max(matching, key=lambda n: (n.count("-"), len(n)))
    return "nvidia-" + "-".join(p for p in parts if p not in {"nvidia", "geforce"})


def version_of(program: str) -> str | None:
    """Return the vLLM version installed beside a program, without starting it (which takes eight seconds)."""
    found = shutil.which(program)
    if found is None:
        return None
    for folder in (Path(found).parent, Path(found).resolve().parent):
        for info in sorted(folder.parent.glob("lib/python3*/site-packages/vllm*-*.dist-info")):
            match = re.fullmatch(r"vllm(?:_cpu)?-(\d+\.\d+(?:\.\d+)?)\S*\.dist-info", info.name)
            if match:
                return match[1]
    return None


def name_of(config: ServingConfig, model: str) -> str:
    """Return a service's name from the served name or the model."""
    word = flag_map(config.args).get("served-model-name") or model
    last = word.rstrip("/").rsplit("/", 1)[-1].lower()
    return re.sub(r"[^a-z0-9]+", "-", last).strip("-")[:40].rstrip("-") or "server"


def program_words(words: tuple[str, ...]) -> int:
    """Return how many words name the program; ``serve`` and what follows are given to it."""
    if "serve" in words[1:8]:
        return words.index("serve", 1)
    if "-m" in words[1:3] and words.index("-m") + 1 < len(words):
        return words.index("-m") + 2
    script = len(words) > 1 and not words[1].startswith("-")
    return 2 if script and Path(words[0]).name.startswith("python") else 1


def _count(args: tuple[str, ...], cards: tuple[Card, ...]) -> int:
    flags = flag_map(args)
    asked = [flags.get(name, "1") for name in ("tensor-parallel-size", "pipeline-parallel-size")]
    wanted = 1
    for word in asked:
        wanted *= int(word) if word.isascii() and word.isdigit() else 1
    return max(wanted, 1) if cards else 1
