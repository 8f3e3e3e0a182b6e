"""What pyproject.toml cannot say: a wheel holds the application below a package of its own (docs/adr/0046)."""

import shutil
import sys
from pathlib import Path

from setuptools import find_namespace_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
LAUNCHER = "vllm_sre_agent"
APPLICATION = ("agent", "prompts", "examples")
EDITABLE = "editable_wheel" in sys.argv  # a checkout: tests and tools import agent/ from where it stands


class WithApplication(build_py):
    """Puts the application beside the launcher; an editable installation leaves it where it is."""

    def run(self) -> None:
        """Copy the packages, then the application, whole."""
        super().run()
        if EDITABLE:
            return
        for folder in APPLICATION:
            target = Path(self.build_lib) / LAUNCHER / "_application" / folder
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(ROOT / folder, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))


setup(
    packages=[LAUNCHER, *(find_namespace_packages(include=["agent*"]) if EDITABLE else [])],
    package_dir={LAUNCHER: f"deploy/wheel/{LAUNCHER}"},
    cmdclass={"build_py": WithApplication},
)
