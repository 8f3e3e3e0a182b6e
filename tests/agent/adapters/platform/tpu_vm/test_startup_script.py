"""A startup script of somebody else: its docker run is read where it stands plainly, and nothing is guessed."""

import pytest

from agent.adapters.platform.tpu_vm.startup_script import docker_run
from agent.core.service.serving import EnvVar

PLAIN = """#!/bin/bash
set -e
# docker run in a comment is none
gcloud auth configure-docker
docker run -d --rm --name vllm-gemma4 --privileged --net=host \\
  -v /dev/shm:/dev/shm --shm-size 10gb \\
  -e HF_HOME=/dev/shm -e HF_TOKEN=$HF_TOKEN -e VLLM_TPU=1 \\
  vllm/vllm-tpu:nightly \\
  vllm serve google/gemma-4-E2B-it --tensor-parallel-size 4 --gpu-memory-utilization 0.95 \\
  --limit-mm-per-prompt '{"image":4,"audio":1}' > /var/log/vllm.log 2>&1
echo done
"""


def test_flags_are_read_from_a_plain_script() -> None:
    """Words as the shell would give them; what only the shell knows is named and not held."""
    found = docker_run(PLAIN)
    assert found.config.image == "vllm/vllm-tpu:nightly"
    assert found.config.args == (
        *("vllm", "serve", "google/gemma-4-E2B-it", "--tensor-parallel-size", "4", "--gpu-memory-utilization", "0.95"),
        *("--limit-mm-per-prompt", '{"image":4,"audio":1}'),
    )
    assert found.config.env == (
        EnvVar(name="HF_HOME", value="/dev/shm"),
        EnvVar(name="HF_TOKEN", secret="startup script"),
        EnvVar(name="VLLM_TPU", value="1"),
    )
    assert found.says == "the startup script is not the agent's: its flags are read, changes of it are for a person"


HIDDEN = {
    "no script": ("", "the node has no startup script"),
    "no docker": ("#!/bin/bash\nvllm serve m\n", "it says docker run 0 times, want once"),
    "two containers": ("docker run a\ndocker run b\n", "it says docker run 2 times, want once"),
    "two containers in a line": ("docker run a && docker run b\n", "it says docker run 2 times, want once"),
    "a variable": ("docker run i serve m --max-model-len $LEN\n", "the shell fills in '$LEN'"),
    "an image in a variable": ('docker run "$IMAGE" serve m\n', "the shell fills in '$IMAGE'"),
    "a substitution": ("docker run i serve `cat model`\n", "the shell fills in"),
    "an option that is not known": ("docker run --gpus all i serve m\n", "an option '--gpus' that is not known here"),
    "no image": ("docker run --rm\n", "docker run names no image"),
    "a quote that does not end": ("docker run i serve 'm\n", "No closing quotation"),
}


@pytest.mark.parametrize(("script", "why"), HIDDEN.values(), ids=HIDDEN.keys())
def test_a_script_that_hides_its_flags_gives_none(script: str, why: str) -> None:
    """Nothing is guessed: the configuration is empty, and the reason is said."""
    found = docker_run(script)
    assert (found.config.image, found.config.args) == ("", ())
    assert why in found.says
