"""The installed form: a wheel alone, outside the checkout, beside other people's packages."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile

import pytest

EXAMPLE = "gemma4-26b-l4-startup-probe"


@pytest.fixture(scope="module")
def wheel(root, tmp_path_factory):
    """The wheel of this checkout, built with nothing fetched; its scratch files stay out of the tree."""
    out = tmp_path_factory.mktemp("dist")
    built = out / "tree"
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    names = [name for name in tracked.stdout.split("\0") if name and not name.startswith(("tests/", "docs/"))]
    if not names:
        pytest.skip("not a git checkout: which files belong to it is unknown")
    for name in names:
        if (root / name).is_file():
            (built / name).parent.mkdir(parents=True, exist_ok=True)
            (built / name).write_bytes((root / name).read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
         "--wheel-dir", str(out), "."],
        cwd=built, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (path,) = out.glob("*.whl")
    return path, names


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Its files in an environment that has the locked packages, and a package of somebody else's called agent."""
    place = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(place, with_pip=False, symlinks=True)
    packages = place / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    with zipfile.ZipFile(wheel[0]) as held:
        held.extractall(packages)
    (packages / "agent").mkdir()
    (packages / "agent" / "__init__.py").write_text("raise RuntimeError('somebody else is called agent')\n")
    (packages / "locked.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return place / "bin" / "python"


def run(python, folder, *words, **environ):
    """The command line as installed, in a folder of its own and with nothing of ours around it."""
    return subprocess.run(
        [str(python), "-P", "-m", "vllm_sre_agent", *words],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "STORE": f"sqlite:{folder / 'state'}", **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.built
@pytest.mark.journey
def test_the_wheel_brings_one_package_and_every_file_of_the_application(wheel):
    """Catalogues, migrations, templates, prompts and examples: the tracked files, no more and no fewer."""
    path, names = wheel
    inside = zipfile.ZipFile(path).namelist()
    assert {name.split("/")[0] for name in inside} == {"vllm_sre_agent", "vllm_sre_agent-0.1.0.dist-info"}
    prefix = "vllm_sre_agent/_application/"
    assert {name.removeprefix(prefix) for name in inside if name.startswith(prefix)} == {
        name for name in names if name.startswith(("agent/", "prompts/", "examples/"))
    }


@pytest.mark.built
@pytest.mark.journey
def test_it_says_its_command_its_python_and_its_extras(wheel):
    path, _ = wheel
    held = zipfile.ZipFile(path)
    text = {name.split("/")[-1]: held.read(name).decode() for name in held.namelist() if ".dist-info/" in name}
    assert "sre-agent = vllm_sre_agent:main" in text["entry_points.txt"]
    assert "Requires-Python: >=3.11" in text["METADATA"]
    for extra in ("kubernetes", "aws", "azure", "tpu", "mcp"):
        assert f"Provides-Extra: {extra}" in text["METADATA"]


@pytest.mark.built
def test_a_recorded_incident_comes_as_far_as_a_plan(installed, tmp_path):
    """Nothing but the wheel; a package of the same import name beside it is left alone."""
    said = run(installed, tmp_path, "replay", EXAMPLE, "--json")
    assert said.returncode == 1, said.stderr  # it waits for a person
    assert "startup_probe_failed" in said.stdout
    assert json.loads(said.stdout.splitlines()[-1])


@pytest.mark.built
def test_the_release_is_that_of_the_wheel(installed, tmp_path):
    assert run(installed, tmp_path, "--version").stdout == "sre-agent 0.1.0\n"


@pytest.mark.built
def test_a_home_that_cannot_be_written_and_a_bare_locale_are_no_trouble(installed, tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    said = run(installed, tmp_path, "fit", "--model", "google/gemma-3-27b-it", "--accelerator", "nvidia-a100-80gb",
               HOME=str(home), LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")  # fmt: skip
    assert said.returncode in {0, 1}
    assert said.stdout
    assert "Traceback" not in said.stderr


@pytest.mark.built
def test_the_doctor_knows_that_it_is_a_package(installed, tmp_path):
    said = run(installed, tmp_path, "doctor")
    assert said.returncode == 0, said.stderr
    assert "good     installation                 a package" in said.stdout
