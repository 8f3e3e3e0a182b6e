"""R17: the end of a server that nobody asked for opens an incident, whatever it printed last; an asked one opens none."""

import dataclasses
import itertools
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent.adapters.logs.host import Follower
from agent.app import build_app
from agent.core.incident.phase import Phase
from agent.core.intake.origin import Reading
from agent.core.intake.plain_log import signals_of_text
from agent.core.intake.read import signals_of
from agent.core.intake.signal import AlertState, Signal, Source
from agent.core.service.services import Services
from agent.core.value import digest
from agent.entrypoints.cli.analysis import analysis
from agent.entrypoints.cli.records import JsonRecord
from agent.entrypoints.monitor.host_monitor import HostMonitor
from agent.entrypoints.service import handlers
from agent.errors import DependencyFailed
from agent.ports.host import Stage, Start, State
from agent.ports.logs import InstanceLog, LogLine
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import read_settings
from agent.stages.signal_to_incident import signal_to_incident
from tests.counts import some

ROOT = Path(__file__).resolve().parents[2]
T0 = datetime(2026, 11, 22, 3, 0, tzinfo=UTC)
HEALTHY = (ROOT / "tests" / "data" / "vllm-cpu-logs" / "01_ready_llama_dummy.log").read_text().splitlines()[:92]

LAST = {
    "resource_tracker": "resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 1 leaked shared_memory objects",
    "shutdown complete": "INFO:     Application shutdown complete.",
    "nccl": "[rank0]:[W1122 ProcessGroupNCCL.cpp:1479] Warning: WARNING: destroy_process_group() was not called before program exit",
    "nothing": "",
    "binary": "\x00\x01\x7f\x1b[31m\ufffd" + "".join(map(chr, range(128, 256))),
    "no line end": "x" * 1_000_000,
    "access": 'INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 200 OK\nINFO:     127.0.0.1:1 - "POST /v1/completions HTTP/1.1" 200 OK',
    "shutting down": "INFO:     Shutting down\nINFO:     Waiting for application shutdown.",
    "ready": "INFO:     Application startup complete.",
    "finished": "INFO:     Finished server process [1]",
    "version": "INFO 11-22 03:00:00 [utils.py:306] version 0.32.0",
    "deprecated": "FutureWarning: this is deprecated and can safely be ignored",
    "statistics": "INFO 11-22 03:00:00 [loggers.py:123] Engine 000: Avg prompt throughput: 0.0 tokens/s, Running: 0 reqs, Waiting: 0 reqs",
    "a client says so": 'INFO:     10.0.0.9:1 - "POST /v1/chat?received SIGTERM HTTP/1.1" 200 OK',
}
SOAK = bool(os.environ.get("SOAK"))
CODES = range(256) if SOAK else (0, 1, 2, 3, 64, 126, 127, 128, 134, 135, 137, 139, 143, 255)
SIGNALS = range(1, 65) if SOAK else (1, 2, 6, 7, 9, 11, 15, 31, 64)
ENDS = [*((code, None) for code in CODES), *((None, number) for number in SIGNALS)]
KILLS = {(137, None), (None, 9)}


class Logs:
    """Every instance printed a healthy start and then its last lines."""

    def __init__(self):
        self.last = {}

    def instance_log(self, service, *, revision, instance, until, limit=2000):
        said = (*HEALTHY, *self.last.get(service, "").split("\n"))
        lines = tuple(LogLine(at=T0 + timedelta(milliseconds=n), text=text) for n, text in enumerate(said))
        return InstanceLog(service=service, revision=revision, instance=instance, lines=lines, complete=True)


class Pipeline:
    """The real stages over the embedded store."""

    def __init__(self, folder):
        made = build_app(read_settings({"STORE": f"sqlite:{folder}"}, platform="none"))
        self.logs = Logs()
        environment = dataclasses.replace(made.environment, logs=self.logs)
        self.installation = dataclasses.replace(made, environment=environment)
        self.drive = self.installation.worker(handlers(self.installation), threads=1).run_due
        self.folder = folder

    def take(self, signals):
        for signal in signals:
            signal_to_incident(self.installation.contexts[Owner.INTAKE], signal)
        self.drive()

    def incidents(self, service):
        return self.installation.store.incidents(Query(service=service))


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    return Pipeline(tmp_path_factory.mktemp("state"))


def at(seconds):
    return (T0 + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def entry(service, text, *, log, seconds, revision="r1", instance="i1", kind="cloud_run_revision", **more):
    labels = {"service_name": service, "revision_name": revision, "project_id": "p", "location": "l"}
    return {
        "insertId": digest([service, text[:100], seconds, log])[:16],
        "logName": f"projects/p/logs/{log}",
        "resource": {"type": kind, "labels": labels},
        "labels": {"instanceId": instance, "container_name": "vllm-1"},
        "severity": "INFO",
        "timestamp": at(seconds),
        "textPayload": text,
    } | more


def printed(service, last, seconds=1):
    """The last lines as the sink could let them through, 200,000 characters of one at most."""
    found = [text[:200_000] for text in last.split("\n") if text.strip()]
    return [
        entry(service, text, log="run.googleapis.com%2Fstderr", seconds=seconds + n / 10)
        for n, text in enumerate(found)
    ]


def cloud_run(service, last, code, number):
    said = f"Container called exit({code})." if number is None else f"Container terminated on signal {number}."
    bodies = [*printed(service, last), entry(service, said, log="run.googleapis.com%2Fvarlog%2Fsystem", seconds=5)]
    return [signal for body in bodies for signal in signals_of(body, Reading()).signals]


def kubernetes(service, last, code, number, **metadata):
    ended = {"exitCode": code if number is None else 128 + number, "reason": "Completed" if code == 0 else "Error"}
    ended |= {"signal": number or 0, "finishedAt": at(5), "message": last[:2000]}
    state = {"name": "vllm", "restartCount": 1, "ready": True, "lastState": {"terminated": ended}}
    state["state"] = {"running": {"startedAt": at(6)}}
    named = f"{service}-56494768b7-544n6"
    pod = {"kind": "Pod", "metadata": {"name": named, **metadata}, "status": {"phase": "Running"}}
    pod["status"]["containerStatuses"] = [state]
    return signals_of(json.loads(json.dumps(pod)), Reading()).signals


def container_apps(service, last, code, number, *, reason="ProcessExited"):
    row = {"ContainerAppName_s": service, "RevisionName_s": "r1", "ReplicaName_s": "i1"}
    words = f"Container 'vllm' was terminated with exit code '{code if number is None else 128 + number}' and reason '{reason}'"
    console = [row | {"Log_s": text[:60_000], "TimeGenerated": at(1)} for text in last.split("\n") if text.strip()]
    system = row | {"Reason_s": "ContainerTerminated", "Log_s": words, "TimeGenerated": at(5), "Type_s": "Normal"}
    return [signal for body in (*console, system) for signal in signals_of(body, Reading()).signals]


def plain(service, lines):
    found = signals_of_text("\n".join(lines), named=service, reading=Reading(), at=T0)
    return [signal for signal in found if hasattr(signal, "key")]


def docker(service, last, code, number, *, before=(), after=()):
    code = code if number is None else 128 + number
    own = [f"{service}-vllm-1  | {text}" for text in (*HEALTHY, *last.split("\n"))]
    return plain(service, [*own, *before, f"{service}-vllm-1 exited with code {code}", *after])


def systemd(service, last, code, number, *, before=(), after=()):
    head = "Nov 22 03:00:05 box systemd[1]: "
    own = [f"Nov 22 03:00:01 box vllm[77]: {text}" for text in (*HEALTHY, *last.split("\n"))]
    unit = f"{service}.service"
    if number is not None:
        ends = [
            f"{unit}: Main process exited, code=killed, status={number}/SIG",
            f"{unit}: Failed with result 'signal'.",
        ]
    elif code:
        ends = [
            f"{unit}: Main process exited, code=exited, status={code}/X",
            f"{unit}: Failed with result 'exit-code'.",
        ]
    else:
        ends = [f"{unit}: Deactivated successfully."]
    return plain(service, [*own, *(head + text for text in (*before, *ends, *after))])


TOLD = {"cloud_run": cloud_run, "kubernetes": kubernetes, "container_apps": container_apps, "docker": docker, "systemd": systemd}  # fmt: skip


def watched(pipeline, service, last, code, number, **start):
    """The watcher's own look at a start that has ended, with its log in a file."""
    log = pipeline.folder / f"{service}.log"
    log.write_bytes(
        b"\n".join([*map(str.encode, HEALTHY), last.encode(), *([bytes(range(256))] if "\x00" in last else [])])
    )
    ended = Start(
        revision="r1",
        mark=digest(service)[:20],
        template="{}",
        stage=Stage.ENDED,
        began_at=T0,
        ended_at=T0,
        exit_code=code if number is None else -number,
        says="the server ended",
        last_line=last[-300:],
        **start,
    )
    page = State(service=service, uid="u", template="{}", starts=(ended,))
    platform = SimpleNamespace(settled=lambda _: page, first_byte=lambda *_: 0, log_path=lambda *_: log, again=None)
    folder = pipeline.folder / service
    folder.mkdir()
    HostMonitor(pipeline.installation, service, platform=platform, doctor=None, folder=folder).look()
    pipeline.drive()


def happens(pipeline, platform, service, last, code, number):
    pipeline.logs.last[service] = last
    if platform == "host":
        watched(pipeline, service, last, code, number)
    else:
        pipeline.take(TOLD[platform](service, last, code, number))


def cells():
    """Every last line with the telling ends, every end with some last lines: in the soak every code, with four each."""
    wanted = [(last, end) for last in LAST for end in ((0, None), (1, None), (None, 9))]
    lasts = itertools.cycle(last for last in LAST if last != "no line end")
    return dict.fromkeys([*wanted, *((next(lasts), end) for end in ENDS for _ in range(4 if SOAK else 1))])


@pytest.mark.parametrize("platform", ["host", *TOLD])
def test_an_unasked_end_opens_an_incident_that_is_not_benign(pipeline, platform):
    """Last lines x exit codes and signals, through intake, the incident and its diagnosis with the whole log."""
    wrong = []
    for n, (last, (code, number)) in enumerate(some(cells(), one_in=5)):
        service = f"{platform.replace('_', '-')}-{n}"
        happens(pipeline, platform, service, LAST[last], code, number)
        found = pipeline.incidents(service)
        said = [(i.phase, i.diagnosis.class_ if i.diagnosis else None) for i in found]
        known = {"host_oom"} if (code, number) in KILLS else {c for _, c in said} - {"benign", None}
        if len(found) != 1 or said[0][0] is Phase.SELF_RECOVERED or said[0][1] not in known:
            wrong.append((last, code, number, said))
    assert wrong == []


SIGTERM = "(APIServer pid=1) INFO 11-22 03:00:03 [launcher.py:254] [shutdown] API server: shutdown triggered"


def asked_cloud_run(service, code, number):
    bodies = [entry(service, SIGTERM, log="run.googleapis.com%2Fstdout", seconds=2)]
    stopped = [signal for body in bodies for signal in signals_of(body, Reading()).signals]
    return [*stopped, *cloud_run(service, LAST["shutdown complete"], code, number)]


def asked_scaled_to_zero(service, code, number):
    row = {"ContainerAppName_s": service, "RevisionName_s": "r1", "TimeGenerated": at(3), "Type_s": "Normal"}
    row |= {"Reason_s": "KEDAScaleTargetDeactivated", "Log_s": "Deactivated apps/v1.Deployment from 1 to 0"}
    return [*signals_of(row, Reading()).signals, *container_apps(service, "", code, number)]


def ec2(service, kind, **detail):
    body = {"detail-type": kind, "source": "aws.ec2", "time": at(3), "detail": detail, "id": service}
    return signals_of(body, Reading(watched=lambda _: service)).signals


def asked_ec2(service, kind, **detail):
    gone = {"instance-id": "i-0abc", "state": "stopping"}
    return [*ec2(service, kind, **detail), *ec2(service, "EC2 Instance State-change Notification", **gone)]


DELETED = {"deletionTimestamp": at(33), "deletionGracePeriodSeconds": 30}
CALLED = {"requestParameters": {"instancesSet": {"items": [{"instanceId": "i-0abc"}]}}}
ASKED = {
    "cloud_run: scale-in or rollout": asked_cloud_run,
    "container_apps: scaled to zero": asked_scaled_to_zero,
    "container_apps: operator": lambda s, c, n: container_apps(s, "", c, n, reason="ManuallyStopped"),
    "kubernetes: deletion, scale-in, rollout": lambda s, c, n: kubernetes(s, "", c, n, **DELETED),
    "systemd: operator": lambda s, c, n: systemd(s, "", c, n, before=[f"Stopping {s}.service - vLLM..."]),
    "docker: operator": lambda s, c, n: docker(s, "", c, n, before=["Gracefully stopping... (press Ctrl+C again to force)"]),
    "ec2: scale-in": lambda s, c, n: asked_ec2(s, "EC2 Instance Terminate Successful", EC2InstanceId="i-0abc"),
    "ec2: operator": lambda s, c, n: asked_ec2(s, "AWS API Call via CloudTrail", eventName="StopInstances", **CALLED),
}  # fmt: skip


@pytest.mark.parametrize("how", ASKED)
def test_an_asked_end_opens_none(pipeline, how):
    """Who asked is told before the end, or with it; the code then says nothing."""
    for n, (code, number) in enumerate(e for e in ENDS if e[0] not in {126, 127}):
        service = f"{digest(how)[:10]}-{n}"
        pipeline.take(ASKED[how](service, code, number))
        assert pipeline.incidents(service) == (), (code, number)


def test_the_operators_stop_and_our_own_restart_open_none(pipeline):
    """The record of this machine says that the end was asked for, whatever the code."""
    for n, (code, number) in enumerate(ENDS):
        watched(pipeline, f"stopped-{n}", "", code, number, asked_at=T0)
        assert pipeline.incidents(f"stopped-{n}") == ()


def sigterm(service, seconds=2, instance="i1"):
    body = entry(service, SIGTERM, log="run.googleapis.com%2Fstdout", seconds=seconds, instance=instance)
    return signals_of(body, Reading()).signals


def exited(service, seconds=5, instance="i1", code=0):
    said = f"Container called exit({code})."
    body = entry(service, said, log="run.googleapis.com%2Fvarlog%2Fsystem", seconds=seconds, instance=instance)
    return signals_of(body, Reading()).signals


def test_a_stop_that_is_told_after_the_end_closes_the_incident(pipeline):
    """Messages come in any order: what was opened for want of the stop says so, and is over."""
    pipeline.take(exited("late"))
    (opened,) = pipeline.incidents("late")
    assert opened.cause == "unknown"
    pipeline.take(sigterm("late"))
    (closed,) = pipeline.incidents("late")
    assert (closed.id, closed.phase) == (opened.id, Phase.SELF_RECOVERED)
    assert "scale in or rollout" in closed.ended_why


def test_a_stop_of_one_instance_explains_no_other(pipeline):
    """One of two instances is scaled in; the other one that ends was asked by nobody."""
    pipeline.take([*sigterm("pair"), *exited("pair"), *exited("pair", seconds=6, instance="i2")])
    (incident,) = pipeline.incidents("pair")
    assert [s.instance for s in pipeline.installation.store.signals(incident.id)] == ["i2"]


def test_a_stop_does_not_close_what_failed_besides(pipeline):
    """The engine had died before the platform asked: the incident stays, with its cause."""
    dead = "ERROR 11-22 [async_llm.py:906] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."
    body = entry("dead", dead, log="run.googleapis.com%2Fstderr", seconds=1)
    pipeline.take([*signals_of(body, Reading()).signals, *exited("dead"), *sigterm("dead", seconds=4)])
    (incident,) = pipeline.incidents("dead")
    assert (incident.cause, incident.phase) == ("engine_dead", Phase.DIAGNOSED)


def alert(service, state, seconds):
    fields = {"started_at": at(0)}
    return Signal(
        key=digest([service, state]), source=Source.ALERT, service=service, platform="cloud_run", revision="r1", instance="i1",
        at=T0 + timedelta(seconds=seconds), text="latency is high", alert_id="a1", alert_state=state, fields=fields,
    )  # fmt: skip


def test_a_closed_alert_does_not_end_what_a_server_ended(pipeline):
    """Without the end it would be over; with it a person hears of the end."""
    pipeline.take([alert("calm", AlertState.OPEN, 1), alert("calm", AlertState.CLOSED, 9)])
    assert [i.phase for i in pipeline.incidents("calm")] == [Phase.SELF_RECOVERED]
    pipeline.take([alert("ended", AlertState.OPEN, 1), *exited("ended"), alert("ended", AlertState.CLOSED, 9)])
    (incident,) = pipeline.incidents("ended")
    assert incident.phase is Phase.DIAGNOSED


def test_an_end_that_arrives_after_its_incident_had_recovered_opens_another(pipeline):
    """The alert closed, and only then the end from before it came: it is not counted away."""
    pipeline.take([alert("slow", AlertState.OPEN, 1), alert("slow", AlertState.CLOSED, 9)])
    pipeline.take(exited("slow"))
    assert sorted(i.phase for i in pipeline.incidents("slow")) == [Phase.DIAGNOSED, Phase.SELF_RECOVERED]


def test_one_end_is_one_observation_however_often_the_pod_is_told(pipeline):
    """The status of a pod comes again with each change; an end that a person has dealt with opens nothing anew."""
    for _ in range(3):
        pipeline.take(kubernetes("often", "", 1, None))
    (incident,) = pipeline.incidents("often")
    assert incident.signal_count == 1


def test_an_end_is_told_though_the_log_cannot_be_read(pipeline, monkeypatch):
    """What the watcher knows of the end does not depend on what was printed."""

    def unreadable(self, *, ended=False):
        raise DependencyFailed("the log was not read", why="Input/output error", hint="nothing to do")

    monkeypatch.setattr(Follower, "pieces", unreadable)
    watched(pipeline, "no-log", "", 1, None)
    assert len(pipeline.incidents("no-log")) == 1


def test_a_replay_counts_the_ends_of_many_instances_apart(tmp_path):
    """Nine instances are scaled in, the tenth ends unasked: equal lines of other instances do not hide it."""
    bodies = []
    for n in range(10):
        named = {"seconds": 10 * n, "instance": f"i{n}"}
        stop = entry("many", SIGTERM, log="run.googleapis.com%2Fstdout", **named)
        bodies += [] if n == 9 else [stop]
        bodies.append(entry("many", "Container called exit(0).", log="run.googleapis.com%2Fvarlog%2Fsystem", **named))
    records = [JsonRecord(origin="x", line=n, value=body) for n, body in enumerate(bodies)]
    settings = read_settings({"STORE": f"sqlite:{tmp_path}"}, platform="none")
    with analysis(settings, run="replay-1", now=T0, services=Services(services=())) as replayed:
        assert replayed.feed_all(records, service="many") == ()
        (incident,) = replayed.settle()
        assert [s.instance for s in replayed.app.store.signals(incident.id)] == ["i9"]
