"""deploy/Dockerfile without a container engine: its steps on this machine, and the rules that linters have."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest
import yaml


@pytest.fixture(scope="module")
def steps(root):
    """Instruction and words of each step, line ends joined, comments left out."""
    text = (root / "deploy" / "Dockerfile").read_text()
    text = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def stages(steps):
    """The steps of each image, behind its FROM."""
    found = []
    for step in steps:
        if step[0] == "FROM":
            found.append([])
        if found:
            found[-1].append(step)
    return found


def of(stage, name):
    return [words for instruction, words in stage if instruction == name]


def test_the_image_does_not_run_as_root_and_says_what_it_is(stages):
    last = stages[-1]
    assert of(last, "USER") == ["65532:65532"]
    names = [name for name, _ in last]
    assert all(name not in {"RUN", "COPY", "ADD"} for name in names[names.index("USER") :])
    (label,) = of(last, "LABEL")
    told = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]+)"', label))
    assert {"title", "description", "version", "licenses"} <= told.keys()
    assert of(last, "ENTRYPOINT") == ['["sre-agent"]']


def test_label_manifest_and_project_are_one_version(root, stages):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    (label,) = of(stages[-1], "LABEL")
    assert f'version="{project["version"]}"' in label
    assert f'licenses="{project["license"]}"' in label
    (image,) = yaml.safe_load((root / "deploy" / "kubernetes" / "kustomization.yaml").read_text())["images"]
    assert image["newTag"] == project["version"]


def test_the_user_is_the_one_of_the_pod(root, stages):
    (deployment,) = [
        body
        for body in yaml.safe_load_all((root / "deploy" / "kubernetes" / "agent.yaml").read_text())
        if body["kind"] == "Deployment"
    ]
    context = deployment["spec"]["template"]["spec"]["securityContext"]
    assert of(stages[-1], "USER") == [f"{context['runAsUser']}:{context['runAsGroup']}"]


def test_what_linters_ask_for(steps):
    """No ADD, no latest, no sudo, no apt; words as JSON where a process is named; all of pip by checksums."""
    for name, words in steps:
        assert name in {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "LABEL", "ENV", "USER", "EXPOSE", "VOLUME",
                        "HEALTHCHECK", "ENTRYPOINT", "CMD"}  # fmt: skip
        assert not re.search(r":latest\b|\bsudo\b|\bapt(-get)?\b|\bcd ", words)
        if name in {"ENTRYPOINT", "CMD"}:
            assert words.startswith("[")
        if name == "RUN":
            for install in re.findall(r"pip install [^&]*", words):
                assert "--no-cache-dir" in install
                assert "--require-hashes" in install or {"--no-deps", "--no-build-isolation"} <= set(install.split())
        if name == "FROM":
            assert words.split()[0] == "${BASE}"


def sources(stage):
    """Every path of the repository that a stage copies, with where to."""
    for words in of(stage, "COPY"):
        *paths, target = words.split()
        yield from ((path, target) for path in paths if not path.startswith("--"))


def test_nothing_is_copied_that_the_context_leaves_out(root, stages):
    rows = [row for row in (root / ".dockerignore").read_text().splitlines() if row and not row.startswith("#")]
    assert rows[0] == "*"
    kept = [row[1:] for row in rows if row.startswith("!")]
    for path, _ in sources(stages[0]):
        assert (root / path).exists(), path
        assert any(re.fullmatch(re.escape(row).replace(r"\*", ".*"), path) for row in kept), path


@pytest.fixture(scope="module")
def copied(root, stages, tmp_path_factory):
    """What the COPY steps of the first image leave under /app, in a plain folder."""
    app = tmp_path_factory.mktemp("image") / "app"
    app.mkdir()
    for path, target in sources(stages[0]):
        to = app / path if target == "./" else app / target
        if (root / path).is_dir():
            shutil.copytree(root / path, to, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(root / path, to)
    return app


@pytest.mark.built
def test_the_pinned_build_package_is_found(root, copied, stages):
    """The sed of the first RUN: one package, with its checksums."""
    (script,) = re.findall(r"sed -n '([^']+)' requirements-dev.txt", " ".join(of(stages[0], "RUN")))
    said = subprocess.run(
        ["sed", "-n", script, "requirements-dev.txt"], cwd=copied, capture_output=True, text=True, check=True
    )
    assert re.findall(r"^(\S+)==", said.stdout, re.MULTILINE) == ["setuptools"]
    assert "--hash=sha256:" in said.stdout


@pytest.mark.built
def test_the_agent_is_installed_from_what_is_copied_and_starts(copied, stages, tmp_path):
    """The last RUN of the first image in a plain folder: a recorded incident comes as far as a plan."""
    (*_, last) = of(stages[0], "RUN")
    assert last.startswith("/opt/venv/bin/pip install")
    assert "--no-deps" in last
    made = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", "out", "."]
    subprocess.run(made, cwd=copied, capture_output=True, text=True, check=True)
    with zipfile.ZipFile(next((copied / "out").glob("*.whl"))) as held:
        held.extractall(tmp_path / "packages")
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(tmp_path / "packages"),
        "STORE": f"sqlite:{tmp_path / 'state'}",
    }
    words = [sys.executable, "-P", "-m", "vllm_sre_agent", "replay", "gemma4-26b-l4-startup-probe", "--json"]
    said = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert said.returncode == 1, said.stderr  # it waits for a person
    assert json.loads(said.stdout.splitlines()[-1])
    assert "startup_probe_failed" in said.stdout


def test_the_image_holds_the_environment_alone(stages):
    """What runs is what was installed: no sources, no build tools, nothing that is written."""
    assert of(stages[-1], "COPY") == ["--from=build /opt/venv /opt/venv"]
