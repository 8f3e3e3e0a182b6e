"""Which load generator is taken, and how one is installed: real environments, a package of our own in place of guidellm."""

import os
import zipfile
from pathlib import Path

import pytest

from agent.adapters.load.installed import find_driver, install_guidellm
from agent.core.sweep.provenance import Driver
from agent.errors import DependencyFailed
from tests.contracts import fake_guidellm


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty PATH to lay programs into."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


def test_nothing_installed_says_how(path: Path, tmp_path: Path) -> None:
    """By name, and for auto."""
    for wanted in (None, Driver.GUIDELLM):
        with pytest.raises(DependencyFailed, match="sre-agent sweep --install-driver"):
            find_driver(wanted, tmp_path / "drivers")
    with pytest.raises(DependencyFailed, match="run where vLLM is installed"):
        find_driver(Driver.VLLM, tmp_path / "drivers")


def test_guidellm_goes_first_and_its_own_environment_before_the_path(path: Path, tmp_path: Path) -> None:
    """Vllm is taken where it is the only one, or asked for."""
    fake_guidellm.install(path).rename(path / "vllm")
    assert find_driver(None, tmp_path / "drivers").name is Driver.VLLM
    fake_guidellm.install(path)
    assert find_driver(None, tmp_path / "drivers").name is Driver.GUIDELLM
    assert find_driver(Driver.VLLM, tmp_path / "drivers").name is Driver.VLLM


def wheel(folder: Path) -> Path:
    """Return a package with one program, ``guidellm``."""
    name = "guidellm-0.8.1"
    made = folder / f"{name}-py3-none-any.whl"
    files = {
        "guidellm_stand_in.py": "def main():\n    print('guidellm version: 0.8.1')\n",
        f"{name}.dist-info/METADATA": "Metadata-Version: 2.1\nName: guidellm\nVersion: 0.8.1\n",
        f"{name}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{name}.dist-info/entry_points.txt": "[console_scripts]\nguidellm = guidellm_stand_in:main\n",
    }
    with zipfile.ZipFile(made, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
        archive.writestr(f"{name}.dist-info/RECORD", "".join(f"{file},,\n" for file in files))
    return made


@pytest.mark.built
@pytest.mark.slow
def test_it_is_installed_in_an_environment_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then found and run; a second time does nothing."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    said: list[str] = []
    for _ in range(2):
        install_guidellm(tmp_path / "drivers", say=said.append, packages=(str(wheel(tmp_path)),))
    assert find_driver(Driver.GUIDELLM, tmp_path / "drivers").version() == "0.8.1"
    assert said[-1].startswith("guidellm is installed in ")


@pytest.mark.built
@pytest.mark.slow
def test_what_cannot_be_installed_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With pip's own reason; and it may be tried again."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", os.devnull)
    with pytest.raises(DependencyFailed, match="No matching distribution found for guidellm==0"):
        install_guidellm(tmp_path / "drivers", say=lambda _: None, packages=("guidellm==0",))
    assert not (tmp_path / "drivers" / "guidellm").exists()
