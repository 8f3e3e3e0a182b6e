"""Completion: every command, flag and closed list of values is offered by the shell itself, where it is installed."""

import shutil
import subprocess

import pytest

from agent.entrypoints.cli.command_table import COMMANDS
from agent.entrypoints.cli.completion_script import completion_script, words_of

BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_sre_agent
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script_of(tmp_path_factory):
    def make(shell):
        if shutil.which(shell) is None:
            pytest.skip(f"{shell} is not installed here")
        path = tmp_path_factory.mktemp(shell) / "completion"
        path.write_text(completion_script(shell), encoding="utf-8")
        return path

    return make


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["sre-agent", "inc"], {"incidents"}),
        (["sre-agent", "w"], {"watch"}),
        (["sre-agent", "incidents", "sh"], {"show"}),
        (["sre-agent", "incidents", "--fo"], {"--follow", "--format"}),
        (["sre-agent", "incidents", "report", "--format", ""], {"md", "json", "html"}),
        (["sre-agent", "completion", ""], {"bash", "zsh", "fish", "--help"}),
        (["sre-agent", "help", "app"], {"approve"}),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, list) else "",
)
def test_bash_offers_what_the_parsers_take(script_of, tmp_path, words, offered):
    done = subprocess.run(
        ["bash", "-c", BASH, "bash", str(script_of("bash")), *words],
        capture_output=True, text=True, check=True, cwd=tmp_path, timeout=30,
    )  # fmt: skip
    assert set(done.stdout.split()) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_reads_the_script(script_of, shell):
    flag = "--no-execute" if shell == "fish" else "-n"
    done = subprocess.run([shell, flag, str(script_of(shell))], capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_every_flag_is_in_the_script(shell):
    script = completion_script(shell)
    for name in COMMANDS:
        assert name in script
        for flag in words_of(name).flags:
            assert (f"-l {flag[2:]} " if shell == "fish" else flag) in script, (name, flag)
