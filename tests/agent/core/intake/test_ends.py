"""Ends and stops in the words of platforms; nothing that the server prints itself is taken for either."""

import pytest

from agent.app.catalogues import matcher
from agent.core.intake.ends import PlainEnds, cloud_run_end, container_apps_end, end_of, reports_sigterm, systemd_end
from agent.core.intake.signal import AskedBy, End, Stop


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ("Container called exit(0).", End(exit_code=0)),
        ("Container called exit(137).", End(exit_code=137)),
        ("Container terminated on signal 9.", End(signal_number=9)),
        ("Container called exit(-9).", End(signal_number=9)),
        ("Starting new instance. Reason: AUTOSCALING", None),
    ],
)
def test_cloud_run_tells_code_and_signal(said, end):
    assert cloud_run_end(said) == end


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ("Container 'v' was terminated with exit code '1' and reason 'ProcessExited'", End(exit_code=1, reason="ProcessExited")),
        ("Container 'v' was terminated with exit code '' and reason 'ManuallyStopped'", End(reason="ManuallyStopped", asked_by=AskedBy.OPERATOR)),
        ("Container 'v' was terminated with exit code '137' and reason 'OOMKilled'", End(exit_code=137, oom=True, reason="OOMKilled")),
        ("Probe of StartUp failed with status code: 1", None),
    ],
)  # fmt: skip
def test_container_apps_tell_code_and_reason(said, end):
    assert container_apps_end(said) == end


def test_the_platforms_own_container_in_a_replica_is_not_the_server() -> None:
    """Container Apps name theirs k8se-...; they come and go with each replica."""
    assert container_apps_end("Container 'k8se-envoysc' was terminated with exit code '0'") is None
    assert container_apps_end("Container 'k8se' was terminated with exit code '0'") is not None


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("vllm.service: Main process exited, code=killed, status=9/KILL", End(signal_number=9)),
        ("vllm.service: Main process exited, code=exited, status=137/n/a", End(exit_code=137)),
        ("vllm.service: Main process exited, code=dumped, status=11/SEGV", End(signal_number=11)),
        ("vllm.service: Failed with result 'oom-kill'.", End(oom=True, reason="oom-kill")),
        ("vllm.service: A process of this unit has been killed by the OOM killer.", End(oom=True, reason="oom-kill")),
        ("vllm.service: Deactivated successfully.", End(exit_code=0)),
        ("Nov 22 03:00:05 box systemd[1]: vllm.service: Succeeded.", End(exit_code=0)),
        ("Stopping vllm.service - vLLM server...", Stop(by=AskedBy.OPERATOR)),
        ("Started vllm.service - vLLM server.", Stop(by=AskedBy.OPERATOR, over=True)),
        ("apt-daily.service: Deactivated successfully.", None),
        ("Stopping apt-daily.service - Daily apt download...", None),
        ("gemma.service: Deactivated successfully.", End(exit_code=0)),
    ],
)
def test_systemd_tells_the_ends_and_stops_of_the_servers_unit(said, told):
    """A unit is the server's by the service's name, or because it is named like a model server."""
    assert systemd_end(said, own=("gemma",)) == told


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (end_of(code=137), "exit code 137"),
        (end_of(signal=9), "exit code 137"),
        (end_of(code=-9), "exit code 137"),
        (end_of(code=137, reason="OOMKilled"), "OOMKilled"),
        (end_of(code=0), "exit code 0"),
        (end_of(code=99999), ""),
    ],
)
def test_the_catalogue_is_asked_in_one_spelling(end, text):
    """However the platform spells a kill; a code that no process can have says nothing."""
    assert end.catalogue_text == text


@pytest.mark.parametrize(
    "said",
    ["EXIT 137", "exit code 137", "exit status 137", "code=killed, status=9", "      Exit Code:    137",
     "Container 'v' was terminated with exit code '137' and reason 'ProcessExited'", "Container called exit(137).",
     "Container terminated on signal 9.", "vllm-1 exited with code 137", "the server ended with signal 9 (SIGKILL)"],
)  # fmt: skip
def test_a_kill_with_nothing_else_is_host_memory_in_every_spelling(said):
    assert matcher().classify(said, whole_log=False, platform=None).class_ == "host_oom"


def plain(*lines):
    return PlainEnds(("gemma",)).read_all(lines)


@pytest.mark.parametrize(
    ("lines", "end"),
    [
        (["gemma-vllm-1 exited with code 137"], End(exit_code=137)),
        (["gemma-vllm-1  | subprocess exited with code 1"], None),
        (["subprocess exited with code 1"], None),
        (["model-download-1 exited with code 0"], None),
        (["Gracefully stopping... (press Ctrl+C again to force)", "gemma-vllm-1 exited with code 137"],
         End(exit_code=137, asked_by=AskedBy.OPERATOR)),
        (["Gracefully stopping...", "gemma-vllm-1 exited with code 0", "Attaching to gemma-vllm-1", "gemma-vllm-1 exited with code 1"],
         End(exit_code=1)),
        (["systemd[1]: Stopping vllm.service - vLLM...", "systemd[1]: vllm.service: Main process exited, code=killed, status=9/KILL"],
         End(signal_number=9, asked_by=AskedBy.OPERATOR)),
        (["Stopping engine loop", "vllm.service: Main process exited, code=exited, status=1/FAILURE"], End(exit_code=1)),
        (["vllm.service: Main process exited, code=killed, status=9/KILL", "vllm.service: Failed with result 'oom-kill'."],
         End(signal_number=9, oom=True, reason="oom-kill")),
        (["Containers:", "    Last State:     Terminated", "      Reason:       OOMKilled", "      Exit Code:    137"],
         End(exit_code=137, oom=True, reason="OOMKilled")),
        (["Init Containers:", "    State:  Terminated", "      Reason:       Completed", "      Exit Code:    0", "Containers:"], None),
        (["Status:       Terminating (lasts 5s)", "    State:  Terminated", "      Exit Code:    143"],
         End(exit_code=143, asked_by=AskedBy.DELETION)),
        (["Status:       Terminating (lasts 5s)", "    Last State:  Terminated", "      Exit Code:    1"], End(exit_code=1)),
        (["INFO trigger received signal=SIGTERM", "Container called exit(0).", "Container called exit(1)."], End(exit_code=1)),
        (["INFO trigger received signal=SIGTERM", "Container called exit(0)."],
         End(exit_code=0, asked_by=AskedBy.SCALE_IN_OR_ROLLOUT)),
        (["Stopping systemd-networkd", "nothing of an end"], None),
    ],
)  # fmt: skip
def test_a_plain_log_tells_its_last_unasked_end(lines, end):
    """The lines of the manager are known by their form; what a server prints of its own parts is no end of it."""
    assert plain(*lines) == end


def test_the_words_of_a_client_are_no_sigterm():
    """Whoever may send a request could otherwise have the next crash taken for a scale-in."""
    assert reports_sigterm("(APIServer pid=1) INFO [launcher.py:254] [shutdown] API server: shutdown triggered")
    assert not reports_sigterm("If you see error log from logging.cc regarding SIGTERM received, please ignore it")
    assert not reports_sigterm('INFO:     10.0.0.9:1 - "GET /received SIGTERM HTTP/1.1" 404 Not Found')
    assert not reports_sigterm("INFO 11-22 [logger.py:43] Received request cmpl-1: prompt: 'received SIGTERM'")


def test_a_hostile_line_costs_no_more_than_a_long_one():
    """2,048 characters are looked at, whatever stands in them."""
    for said in ("vllm" * 500_000, ".service: " * 200_000, " " * 1_000_000, "systemd: " * 100_000):
        assert plain(said) is None
        assert systemd_end(said) is None
