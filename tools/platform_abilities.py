"""What each platform's adapter can read, change, stage, create and undo, and what it was tested against."""

from typing import Final

from agent.core.value import Value


class Abilities(Value):
    """One row of docs/platforms.md; ``tests/contracts/test_platform.py`` holds the first five equal to the adapter.

    Attributes:
        reads: What ``describe`` tells of a service beside its flags, variables and state.
        changes: What ``validate`` accepts, by the names of the contract suite.
        stages: Whether a new revision can come up without traffic first.
        stages_where: The condition on that; empty where there is none.
        creates: Whether a service can be created.
        logs: Where a server's own log is read.
        undo: What is put back, and how.
        tested: What the adapter ran against.
        unproved: The live step that nobody has seen; empty where there is none.
        guide: The page for its users.
    """

    reads: tuple[str, ...]
    changes: tuple[str, ...]
    stages: bool
    stages_where: str = ""
    creates: bool
    logs: str
    undo: str
    tested: str
    unproved: str = ""
    guide: str


_PLACE: Final = ("CPU and memory", "accelerator", "image", "instances")
_ANYWHERE: Final = ("flags", "model", "restart", "stop", "variables")

ABILITIES: Final[dict[str, Abilities]] = {
    "cloud_run": Abilities(
        reads=(*_PLACE, "address", "concurrency", "startup probe"),
        changes=(*_ANYWHERE, "concurrency", "delete", "instances", "liveness probe", "startup probe"),
        stages=True,
        creates=True,
        logs="Cloud Logging",
        undo="prior template and traffic, as a new revision",
        tested="the official client, on a server that keeps the API's rules",
        unproved="a live project",
        guide="docs/install-gcp.md",
    ),
    "kubernetes": Abilities(
        reads=(*_PLACE, "startup probe", "who changed it"),
        changes=(
            *_ANYWHERE, "delete", "instances", "liveness probe", "progress deadline", "startup probe",
            "termination grace",
        ),
        stages=False,
        creates=True,
        logs="the container's log, also of the start before",
        undo="prior pod template and strategy",
        tested="a real control plane on this machine; the kubelet is played",
        unproved="a kubelet, a GPU, and GKE's sign-in",
        guide="docs/kubernetes.md",
    ),
    "container_apps": Abilities(
        reads=(*_PLACE, "address", "startup probe"),
        changes=(*_ANYWHERE, "delete", "instances", "liveness probe", "startup probe", "termination grace"),
        stages=True,
        stages_where="in Multiple revision mode",
        creates=True,
        logs="Log Analytics; where it is switched on, a replica's log stream until the first row is there",
        undo="prior template, workload profile and weights, as a new revision",
        tested="the official client, on a stand-in of Azure Resource Manager",
        unproved="a live subscription",
        guide="docs/container-apps.md",
    ),
    "ec2": Abilities(
        reads=("CPU and memory", "accelerator", "instances"),
        changes=(*_ANYWHERE, "instance type"),
        stages=False,
        creates=False,
        logs="the unit's journal or the container's log, by Systems Manager; CloudWatch Logs; EC2's system log",
        undo="prior drop-in of the unit, or none; the container before; the instance's type and state as before",
        tested="the official SDK, on moto and stand-ins of Systems Manager (runs the script) and the Docker engine",
        unproved="a live account, a real systemd or Docker engine, a GPU, a spot interruption",
        guide="docs/ec2.md",
    ),
    "tpu_vm": Abilities(
        reads=("accelerator", "address", "image", "instances", "startup probe"),
        changes=(*_ANYWHERE, "startup probe", "termination grace"),
        stages=False,
        creates=False,
        logs="Cloud Logging (`tpu_worker`)",
        undo="prior metadata of the node",
        tested="the official client, on a stand-in of Cloud TPU; the node's real script",
        unproved="a live project, a TPU",
        guide="docs/tpu.md",
    ),
    "host": Abilities(
        reads=(*_PLACE, "concurrency", "startup probe"),
        changes=(*_ANYWHERE, "delete", "startup probe"),
        stages=False,
        creates=True,
        logs="what the server printed since its start",
        undo="prior command line, by a restart",
        tested="real processes; vLLM on a CPU",
        unproved="a GPU",
        guide="docs/watch.md",
    ),
    "rehearsal": Abilities(
        reads=(*_PLACE, "concurrency", "startup probe"),
        changes=(
            *_ANYWHERE, "concurrency", "delete", "instances", "liveness probe", "progress deadline", "startup probe",
            "termination grace",
        ),
        stages=True,
        creates=True,
        logs="recorded",
        undo="simulated",
        tested="recorded outcomes",
        guide="examples/README.md",
    ),
}  # fmt: skip
