"""What starts a server: a program, or a container of it."""

import pytest

from agent.adapters.platform.ec2.command_line import environment, parsed, with_environment
from agent.core.service.serving import EnvVar
from agent.errors import InputRejected

DOCKER = (
    "/usr/bin/docker", "run", "--rm", "--gpus", "all", "-p", "8000:8000", "-e", "HF_TOKEN=hf_x", "--env=A=1", "--ipc=host",
    "vllm/vllm-openai:v0.22.1", "--model", "google/gemma-3-4b-it", "--max-model-len", "8192",
)  # fmt: skip


def test_a_container_is_known_by_its_image_and_flags():
    """Options of the engine stay where they are."""
    line = parsed(DOCKER)
    assert line.image == "vllm/vllm-openai:v0.22.1"
    assert line.args == DOCKER[12:]
    assert line.words == DOCKER
    assert environment(line, [["PATH", "/bin"]]) == (
        EnvVar(name="HF_TOKEN", secret="environment of the unit"),
        EnvVar(name="A", value="1"),
    )


def test_a_program_is_known_by_serve():
    """Python in front or not."""
    assert parsed(("/opt/v/bin/python", "-m", "vllm.entrypoints.openai.api_server", "--model", "m")).args == (
        "--model",
        "m",
    )
    assert parsed(("/opt/vllm", "serve", "m")).front == ("/opt/vllm",)


@pytest.mark.parametrize("words", [("/opt/start.sh",), (), ("docker", "start", "vllm"), ("docker", "run", "--rm")])
def test_what_hides_the_flags_is_refused(words):
    """What is not read must not be taken for absent."""
    with pytest.raises(InputRejected, match="ExecStart was not read"):
        parsed(words)


def test_variables_are_set_and_removed_in_front_of_the_program():
    """What the unit has by itself is not said again; a secret of its own is left alone."""
    told = [["A", "1"], ["B", "2"], ["VLLM_API_KEY", None]]
    line = parsed(("/opt/vllm", "serve", "m"))
    before = environment(line, told)
    wanted = (EnvVar(name="A", value="3"), before[2], EnvVar(name="C", value="x y"))
    changed = with_environment(line, told, wanted)
    assert changed.words == ("/usr/bin/env", "-u", "B", "A=3", "C=x y", "/opt/vllm", "serve", "m")
    again = parsed(changed.words)
    assert again == changed
    assert set(environment(again, told)) == set(wanted)
    assert with_environment(again, told, before).words == line.words


def test_variables_of_a_container_are_for_a_person():
    """They are options of its engine."""
    with pytest.raises(InputRejected, match="options of its engine"):
        with_environment(parsed(DOCKER), [], (EnvVar(name="A", value="2"),))
