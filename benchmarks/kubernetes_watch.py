"""P14: from the approval to the patched object on Kubernetes, beside the rehearsal and a bare patch; an idle watch.

Run: python benchmarks/kubernetes_watch.py [--rounds 5] [--pods 1000] [--idle-s 60]

It needs the control plane beside this repository, which it starts and ends. A round is an incident of an example that
is approved, once with its service as a Deployment there and once on the rehearsal; measured is from the approval to the
operation that the platform named. The watch follows a namespace of running pods that all belong to watched workloads;
measured is the processor time of this process while nothing happens there.
"""

import argparse
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from agent.adapters.kubernetes.client import connect
from agent.app import build_app_in_memory
from agent.app.runtime_environment import kubernetes
from agent.app.stores import machine_clock
from agent.core.incident.phase import Phase
from agent.core.service.services import parse_services
from agent.entrypoints.cli.analysis import SteppedClock
from agent.entrypoints.monitor.cluster_monitor import ClusterMonitor
from agent.entrypoints.service import publish_example
from agent.settings import read_settings
from agent.structured_log import structlog
from tests import kube
from tests.journeys.conftest import ROOT, Journey
from tests.journeys.on_kubernetes import EXAMPLE, begin
from tests.outside import SHARED

MOST_MORE_S = 1.0
MOST_IDLE = 0.01


def journey_in(folder: Path):
    """Return what begins an example in memory, as the fixture of that name does."""

    def make(example: str, *, environment=None) -> Journey:
        settings = read_settings({}, platform=f"rehearsal:{ROOT / 'examples' / example}")
        clock = SteppedClock(datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
        parts = {"environment": environment(settings.with_(store=f"sqlite:{folder}"), clock)} if environment else {}
        app = build_app_in_memory(settings, clock=clock, state=folder, **parts)
        publish_example(app, ROOT / "examples" / example)
        return Journey(app, clock)

    return make


def approved_s(journey: Journey) -> float:
    """Seconds from the approval to the operation that the platform named."""
    asked = journey.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    began = time.perf_counter()
    journey.answer(asked.plan.id)
    while not ((found := journey.incidents()[0]).execution and found.execution.effects[0].operation):
        journey.work()
    return time.perf_counter() - began


def patched_s(cluster: kube.Cluster, path: str) -> float:
    """Seconds of a bare patch of the same object, with the dry run before it."""
    step = [{"op": "add", "path": "/spec/template/metadata/labels/benchmark", "value": str(time.time_ns())}]
    began = time.perf_counter()
    cluster.api.patch(path, step, dry_run=True)
    cluster.api.patch(path, step)
    return time.perf_counter() - began


def change(plane, rounds: int) -> bool:
    """Print the times of a change, and whether they are within the promise."""
    ours, rehearsed, bare = [], [], []
    for number in range(rounds):
        cluster = kube.Cluster(plane, f"benchmark {number}")
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            rehearsed.append(approved_s(journey_in(Path(one))(EXAMPLE)))
            journey, world = begin(journey_in(Path(other)), cluster)
            ours.append(approved_s(journey))
            bare.append(patched_s(cluster, world.path))
            world.close()
        cluster.close()
    more = statistics.median(ours) - statistics.median(rehearsed)
    print(f"approval to patched object, median of {rounds}: {statistics.median(ours):.3f} s on Kubernetes, "
          f"{statistics.median(rehearsed):.3f} s on the rehearsal: {more:.3f} s more (at most {MOST_MORE_S:g}); "
          f"a bare dry run and patch take {statistics.median(bare):.3f} s")  # fmt: skip
    return more <= MOST_MORE_S


def running_pods(cluster: kube.Cluster, count: int) -> None:
    """Make running, ready pods of a workload, on a node of their own."""
    api, node = cluster.api, cluster.namespace
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251 - a kubelet's clock
    row = {"name": "vllm", "image": "i", "imageID": "", "ready": True, "restartCount": 0,
           "state": {"running": {"startedAt": now}}, "lastState": {}}  # fmt: skip
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [row]}
    made = api.create(f"/api/v1/namespaces/{node}/configmaps", {"metadata": {"name": "vllm"}})
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "vllm",
        "uid": made["metadata"]["uid"],
        "controller": True,
    }
    for number in range(count):
        name = f"vllm-5d4f8c7b9d-{number:05d}"
        body = {"metadata": {"name": name, "ownerReferences": [owner]},
                "spec": {"nodeName": node, "containers": [{"name": "vllm", "image": "i"}]}}  # fmt: skip
        api.create(cluster.path("pods"), body)
        api.patch(f"{cluster.path('pods', name)}/status", [{"op": "add", "path": "/status", "value": status}])


def idle(plane, pods: int, idle_s: float) -> bool:
    """Print what a watch costs while nothing happens, and whether that is within the promise."""
    cluster = kube.Cluster(plane, "benchmark watch")
    running_pods(cluster, pods)
    service = {"name": "vllm", "platform": "kubernetes", "namespace": cluster.namespace, "owner": "console",
               "model": "google/gemma-3-27b-it", "accelerator": "nvidia-l4"}  # fmt: skip
    services, settings, clock = (
        parse_services({"service": [service]}),
        read_settings({}, platform="kubernetes"),
        machine_clock(),
    )
    config = str(plane.kubeconfig)
    environment = kubernetes(settings, services, clock, lambda _: connect(kubeconfig=config))
    with tempfile.TemporaryDirectory() as folder:
        app = build_app_in_memory(settings, clock=clock, state=Path(folder), services=services, environment=environment)
        (at,) = app.environment.clusters
        monitor = ClusterMonitor(app, at.follower, at.services, logs=at.logs, folder=Path(folder))
        monitor.start()
        while len(monitor._pods) < pods:  # noqa: SLF001
            time.sleep(0.1)
        time.sleep(2)
        began, used = time.perf_counter(), time.process_time()
        time.sleep(idle_s)
        share = (time.process_time() - used) / (time.perf_counter() - began)
        monitor.stop()
    cluster.close()
    print(f"an idle watch of {pods:,} pods for {idle_s:g} s: {share:.3%} of a core (at most {MOST_IDLE:.0%})")
    return share <= MOST_IDLE


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--idle-s", type=float, default=60)
    args = parser.parse_args()
    if not (SHARED / "rigs" / "kube").is_dir():
        print("not measured: the control plane, ../shared/rigs/kube, is absent")
        return 0
    structlog.configure(
        processors=[structlog.processors.JSONRenderer()], logger_factory=structlog.ReturnLoggerFactory()
    )
    with tempfile.TemporaryDirectory() as folder:
        plane = kube.start_plane(Path(folder), users=("repairer",))
        try:
            good = [change(plane, args.rounds), idle(plane, args.pods, args.idle_s)]
        finally:
            kube.rig("control_plane").stop(plane.directory)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
