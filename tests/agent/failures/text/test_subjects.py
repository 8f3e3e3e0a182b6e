"""Whom a line is about: a server's unit, process or folder, anybody's, or another program's."""

import pytest

from agent.failures.match.matcher import Matcher
from agent.failures.text.subjects import TURN_LINES, Subject, subject_of, unit_started_below, unit_told_to_stop
from tests.agent.failures.log_changes import HEALTHY_START, TOKENS


@pytest.mark.parametrize(
    ("line", "subject"),
    [
        ("systemd[1]: vllm.service: Main process exited, code=dumped, status=11/SEGV", Subject.SERVER),
        ("systemd[1]: llm-7b.service: Failed with result 'signal'.", Subject.SERVER),
        ("systemd[1]: nginx-vllm.service: Failed with result 'signal'.", Subject.SERVER),
        ("systemd[1]: gemma.service: Failed with result 'signal'.", Subject.STRANGER),
        ("systemd[1]: inference@1.service: Failed with result 'signal'.", Subject.STRANGER),
        ("systemd[1]: docker-gemma.service: Failed with result 'signal'.", Subject.STRANGER),
        ("systemd[1]: nginx.service: Failed with result 'signal'.", Subject.PROGRAM),
        ("systemd[1]: user@1000.service: Failed with result 'signal'.", Subject.PROGRAM),
        ("systemd[1]: systemd-journald.service: Watchdog timeout (limit 3min)!", Subject.PROGRAM),
        ("systemd[1]: Failed to start gemma.service: Unit docker.service not found.", Subject.STRANGER),
        ("systemd-oomd[8]: Killed /user.slice/user-7.slice/app-firefox.scope due to memory pressure", Subject.STRANGER),
        ("Killed process 99 (VLLM::EngineCor) total-vm:1kB", Subject.SERVER),
        ("Killed process 99 (ray::RayWorker) total-vm:1kB", Subject.SERVER),
        ("Killed process 99 (python3.12) total-vm:1kB", Subject.SERVER),
        ("Killed process 99 (node) total-vm:1kB", Subject.STRANGER),
        ("Killed process 99 (xray) total-vm:1kB", Subject.STRANGER),
        ('earlyoom[3]: sending SIGTERM to process 41 uid 7 "firefox": badness 900', Subject.STRANGER),
        ("oom-kill:task_memcg=/kubepods.slice/docker-0a1b.scope,task=python3,pid=7,uid=0", Subject.SERVER),
        ("firefox[812]: segfault at 0 ip 00007f", Subject.STRANGER),
        ("mkdir: cannot create directory '/var/lib/grafana': Permission denied", Subject.PROGRAM),
        ("touch: cannot touch '/var/run/nginx.pid': Permission denied", Subject.PROGRAM),
        ("mkdir: cannot create directory ‘/root/.cache/flashinfer’: Permission denied", Subject.SERVER),
        ("mkdir: cannot create directory '/srv/lamp': Permission denied", Subject.STRANGER),
        ("PermissionError: [Errno 13] Permission denied: '/srv/lamp'", Subject.NOBODY),
        ("Main process exited, code=dumped, status=11/SEGV", Subject.NOBODY),
        ("cpuset=docker-0a1b.scope oom-kill", Subject.NOBODY),
    ],
)
def test_a_line_names_whom_it_is_about(line: str, subject: Subject) -> None:
    assert subject_of(line) is subject


ANOTHERS = [
    "touch: cannot touch '/var/run/nginx.pid': Permission denied",
    "nginx: cannot open /var/log/nginx/access.log for writing: Permission denied",
    "mkdir: cannot create directory '/var/lib/grafana': Permission denied",
    "systemd[1]: nginx.service: Main process exited, code=dumped, status=11/SEGV",
    "systemd[1]: snapd.service: Main process exited, code=killed, status=9/KILL",
    "systemd[1]: snapd.service: Failed with result 'signal'.",
    "● nginx.service - A proxy\n     Loaded: loaded\n     Active: failed (Result: exit-code) since Mon",
    "systemd-coredump[77]: Process 76 (gnome-shell) of user 0 dumped core.",
    "systemd[1]: systemd-journald.service: Watchdog timeout (limit 3min)!",
    "systemd[1]: docker.service: start operation timed out. Terminating.",
    "Failed to start nvidia-dcgm.service: Unit nvidia-dcgm.service not found.",
    "Configured ffmpeg binary not found at /usr/bin/ffmpeg",
]


@pytest.mark.parametrize("text", ANOTHERS)
def test_the_trouble_of_another_program_is_none_of_the_server(matcher: Matcher, text: str) -> None:
    """Nor does a line alone wake a monitor; by itself it is not called harmless either."""
    assert matcher.classify(text, whole_log=False, platform="host").class_ == "unknown"
    assert list(matcher.troubles([text.replace("\n", " ")])) == []
    around = "\n".join([*HEALTHY_START, *text.split("\n"), *TOKENS])
    found = matcher.classify(around, whole_log=True, platform="host")
    assert found.benign or found.hint
    assert not found.certain or "ffmpeg" in text


REGISTRY = (
    'docker: Error response from daemon: Get "https://registry-1.docker.io/v2/": net/http: request canceled while waiting '
    "for connection (Client.Timeout exceeded while awaiting headers)"
)


@pytest.mark.parametrize(
    ("line", "class_"),
    [
        ("systemd-oomd[812]: Killed /user.slice/user-7.slice/app-firefox.scope due to memory pressure", "host_oom"),
        ('earlyoom: sending SIGTERM to process 99 uid 1 "firefox": badness 900', "host_oom"),
        ("kernel: Out of memory: Killed process 99 (node) total-vm:9kB", "host_oom"),
        ("systemd[1]: nginx.service: systemd-oomd killed 3 process(es) in this unit.", "host_oom"),
        ("systemd[1]: gemma.service: Main process exited, code=dumped, status=11/SEGV", "illegal_memory_access"),
        ("systemd[1]: llm.service: Main process exited, code=killed, status=9/KILL", "host_oom"),
        ("systemd[1]: inference@1.service: Failed with result 'signal'.", "engine_dead"),
        ("mkdir: cannot create directory '/srv/lamp': Permission denied", "weights_unreadable"),
        (REGISTRY, "image_pull_failed"),
    ],
)
def test_what_may_be_the_servers_is_heard_and_not_certain(matcher: Matcher, line: str, class_: str) -> None:
    for text in (line, "\n".join([*HEALTHY_START, *TOKENS, line])):
        found = matcher.classify(text, whole_log=True, platform="host")
        assert (found.class_, found.certain) == (class_, False)


@pytest.mark.parametrize(
    ("line", "class_"),
    [
        ("kernel: Out of memory: Killed process 99 (VLLM::Worker_TP) total-vm:9kB", "host_oom"),
        ("systemd[1]: vllm.service: systemd-oomd killed 3 process(es) in this unit.", "host_oom"),
        ("mkdir: cannot create directory '/root/.cache/huggingface': Permission denied", "weights_unreadable"),
    ],
)
def test_what_names_the_server_is_certain(matcher: Matcher, line: str, class_: str) -> None:
    found = matcher.classify(line, whole_log=True, platform="host")
    assert (found.class_, found.certain) == (class_, True)
    beside = f"kernel: Out of memory: Killed process 7 (node) total-vm:9kB\n{line}"
    assert matcher.classify(beside, whole_log=True, platform="host").certain is (class_ == "host_oom")


def test_a_device_that_is_no_accelerator_is_a_mistake_of_the_command(matcher: Matcher) -> None:
    said = 'docker: Error response from daemon: error gathering device information while adding custom device "/dev/{}": no such file or directory'
    for device, class_ in {"kfd": "no_gpu_visible", "dri/card0": "no_gpu_visible", "shm": "invalid_flag"}.items():
        found = matcher.classify(said.format(device), whole_log=False, platform="host")
        assert (found.class_, found.certain) == (class_, class_ == "no_gpu_visible")
    assert not matcher.classify('adding custom device "/dev/shm"', whole_log=False, platform="host").certain


SYSTEMD = "May 06 07:08:09 gpu-host-3 systemd[1]: "
ENDED = SYSTEMD + "vllm.service: Main process exited, code=exited, status=137/n/a"


@pytest.mark.parametrize(
    ("above", "told"),
    [
        (["Stopping vllm.service - LLM server..."], True),
        (["Stopping vllm.service - LLM server...", "Stopped vllm.service - LLM server."], True),
        (["Stopping vllm.service...", "Stopping lamp.service...", "Started lamp.service."], True),
        (["Stopping vllm.service...", *["lamp"] * TURN_LINES], False),
        (["Stopping lamp.service - Lamp..."], False),
        (["Stopping vllm.service...", "Stopped vllm.service.", "Starting vllm.service..."], False),
        (["Stopping vllm.service...", "vllm.service: Scheduled restart job, restart counter is at 5."], False),
        (["Stopping vllm.service...", "vllm.service: Start request repeated too quickly."], False),
        (["Stopped vllm.service - LLM server."], False),
        ([], False),
    ],
    ids=[
        "stopping", "stopped", "beside another", "long ago", "another", "started again", "restarted by itself",
        "restarted too often", "stopped by nobody", "nobody",
    ],
)  # fmt: skip
def test_a_unit_was_told_to_stop_until_it_is_started_again(above: list[str], told: bool) -> None:
    lines = [SYSTEMD + line for line in above]
    assert unit_told_to_stop([*lines, ENDED], len(lines)) is told
    assert not unit_told_to_stop([*lines, "vllm: the lamp is out"], len(lines))
    assert not unit_told_to_stop([*lines, ENDED.replace("gpu-host-3", "gpu-host-4")], len(lines))
    assert not unit_told_to_stop([*lines, ENDED], len(lines), banner=len(lines) - 1)


@pytest.mark.parametrize("said", ["Main process exited, code=dumped, status=6/ABRT", "Failed with result 'core-dump'."])
def test_an_order_to_stop_excuses_no_core_dump(said: str) -> None:
    assert not unit_told_to_stop([SYSTEMD + "Stopping vllm.service...", f"{SYSTEMD}vllm.service: {said}"], 1)


def test_a_unit_was_started_below_the_line_that_names_it_and_on_its_host() -> None:
    started = SYSTEMD + "Started vllm.service - LLM server."
    assert unit_started_below([ENDED, started], 0)
    assert not unit_started_below([started, ENDED], 1)
    assert not unit_started_below([ENDED, started.replace("vllm", "lamp")], 0)
    assert not unit_started_below([ENDED, started.replace("gpu-host-3", "gpu-host-4")], 0)


BANNER = "May 06 07:08:09 gpu-host-3 vllm[9]: INFO 05-06 07:08:09 [api_server.py:7] vLLM API server version 0.32.0"


@pytest.mark.parametrize(
    ("since", "benign"), [([], True), ([BANNER], False), ([BANNER, SYSTEMD + "Stopping vllm.service..."], True)]
)
def test_the_order_to_stop_ends_where_a_server_begins(matcher: Matcher, since: list[str], benign: bool) -> None:
    ordered = [*HEALTHY_START, *TOKENS, SYSTEMD + "Stopping vllm.service...", *since]
    assert matcher.classify("\n".join([*ordered, ENDED]), whole_log=True, platform="host").benign is benign
