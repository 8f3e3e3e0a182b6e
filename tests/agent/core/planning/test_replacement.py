"""What stands beside the flags of a plan: the strategy that frees a card, and whose change it is."""

import json

import pytest

from agent.core.plan.action import (
    ForPerson,
    Restart,
    SetEnv,
    SetFlag,
    SetProgressDeadline,
    SetResources,
    SetScaling,
    SetStartupProbe,
    SetStrategy,
    SetTerminationGrace,
    applied,
)
from agent.core.plan.capacity import StartUp
from agent.core.plan.plan import FitSummary
from agent.core.planning.candidates import Candidate
from agent.core.planning.replacement import for_writer, patch_of, release_note, strategy_without_spare, with_room
from agent.core.service.serving import ConfigWriter, EnvVar, Live, Probe, ServingConfig, Strategy

SURGE = Strategy(kind="RollingUpdate", max_surge="25%", max_unavailable="25%")
SHORTER = SetFlag(name="max-model-len", value="4096")
HELM = ConfigWriter(
    who="Helm release 'stack': its next upgrade reverts the change",
    reverts=False,
    workload="Deployment/gemma",
    container="vllm",
    place="the values of Helm release 'stack'",
)
ARGO = HELM.with_(who="Argo CD application 'llm', which reverts changes", reverts=True, place="its repository")


class Fits:
    """Arithmetic that says one thing."""

    def __init__(self, fits: bool | None = True, start: StartUp | None = None) -> None:
        self.fits, self.start = fits, start

    def assess(self, service: str, config: ServingConfig) -> FitSummary:
        return FitSummary(fits=self.fits, sentence="it fits")

    def start_up(self, service: str, config: ServingConfig, *, seen_s: float | None) -> StartUp | None:
        return self.start


def live(*, replicas: int = 1, strategy: Strategy | None = SURGE, **how: object) -> Live:
    config = ServingConfig(
        image="vllm",
        args=("serve", "m", "--max-model-len", "8192"),
        env=(EnvVar(name="A", value="1"), EnvVar(name="B", value="2")),
        cpu=8,
        memory_mib=32768,
        accelerator="nvidia-l4",
        min_instances=replicas,
        max_instances=replicas,
        strategy=strategy,
        progress_deadline_s=600,
    )
    known = {"service": "gemma", "platform": "kubernetes", "config": config, "uid": "u", "generation": 1, "etag": "u/1"}
    return Live.model_validate(known | {"template": "{}", "ready": True} | how)


NEEDS = {
    "one pod, a quarter rounded up": (1, SURGE, True),
    "one pod, which may be away": (1, Strategy(kind="RollingUpdate", max_surge="1", max_unavailable="1"), False),
    "no surge": (1, Strategy(kind="RollingUpdate", max_surge="0", max_unavailable="25%"), False),
    "recreate": (1, Strategy(kind="Recreate"), False),
    "four pods, one of which may be away": (4, SURGE, False),
    "three pods": (3, SURGE, True),
    "a StatefulSet": (1, Strategy(kind="RollingUpdate"), False),
}


@pytest.mark.parametrize(("replicas", "strategy", "needs"), NEEDS.values(), ids=NEEDS)
def test_a_strategy_needs_a_spare_card_by_kubernetes_rounding(replicas: int, strategy: Strategy, needs: bool) -> None:
    """Surge is rounded up, unavailability down, and both zero means that one may be away."""
    assert strategy.needs_spare(replicas) is needs
    assert (strategy_without_spare(live(replicas=replicas, strategy=strategy)) is not None) is needs


def test_a_change_brings_the_strategy_that_it_needs_and_says_the_downtime() -> None:
    """Recreate for the only pod; of several, one goes first."""
    start = StartUp(seconds=666, says="16.4 GB at 24.7 MB/s")
    one = with_room(Candidate(actions=(SHORTER,), why="w"), "gemma", live(), Fits(start=start))
    assert one.actions == (SHORTER, SetStrategy(strategy=Strategy(kind="Recreate")))
    assert "the service is down for about 666 s (16.4 GB at 24.7 MB/s), and for as long again" in one.notes[-1]
    again = with_room(one, "gemma", live(), Fits(start=start))
    assert again == one
    three = with_room(Candidate(actions=(SHORTER,), why="w"), "gemma", live(replicas=3), Fits())
    assert three.actions[-1] == SetStrategy(strategy=Strategy(kind="RollingUpdate", max_surge="0", max_unavailable="1"))
    assert "one pod less answers" in three.notes[-1]
    down = with_room(Candidate(actions=(SHORTER,), why="w"), "gemma", live(ready=False), Fits())
    assert down.notes[-1].endswith("the service is down already")


def test_the_strategy_that_frees_a_waiting_rollout_says_what_it_ends() -> None:
    """The old pod has served all the while; of a service that nothing waits for, the strategy alone ends no pod."""
    recreate = Candidate(actions=(SetStrategy(strategy=Strategy(kind="Recreate")),), why="w")
    for ready in (None, False):
        waits = live(ready=ready, latest_ready_revision="old", latest_created_revision="new")
        one = with_room(recreate, "gemma", waits, Fits())
        assert one.notes[-1].endswith("old serves now and is ended; the service is down until the new pod is ready")
        assert with_room(one, "gemma", waits, Fits()) == one
    assert with_room(recreate, "gemma", live(), Fits()) is recreate


KEPT = {
    "a spare card": (live(spare_accelerator=True), SHORTER),
    "no card at all": (live().with_(config=live().config.with_(accelerator=None)), SHORTER),
    "another platform": (live(strategy=None), SHORTER),
    "scaling alone": (live(), SetScaling(min_instances=2, max_instances=2)),
    "a deadline alone": (live(), SetProgressDeadline(seconds=900)),
}


@pytest.mark.parametrize(("service", "action"), KEPT.values(), ids=KEPT)
def test_nothing_is_added_where_nothing_waits(service: Live, action: object) -> None:
    candidate = Candidate(actions=(action,), why="w")
    assert with_room(candidate, "gemma", service, Fits()) is candidate


def test_a_restart_replaces_a_pod_too() -> None:
    assert len(with_room(Candidate(actions=(Restart(),), why="w"), "gemma", live(), Fits()).actions) == 2


def test_what_is_put_back_all_the_time_becomes_a_patch_for_the_repository() -> None:
    """A person's task with the exact patch, its proof kept; what does not fit is not proposed to anybody."""
    made = for_writer(Candidate(actions=(SHORTER,), why="w"), "gemma", live(writer=ARGO), Fits())
    (task,) = made.actions
    assert isinstance(task, ForPerson)
    assert task.action == "set_flag max_model_len"
    assert "which reverts changes. Make this change in its repository: {" in task.instruction
    patch = json.loads(task.instruction.partition(": ")[2])
    assert patch["spec"]["template"]["spec"]["containers"] == [
        {"name": "vllm", "args": ["serve", "m", "--max-model-len", "4096"]}
    ]
    assert made.fit.fits is True
    too_large = Candidate(actions=(SHORTER,), why="w")
    assert for_writer(too_large, "gemma", live(writer=ARGO), Fits(fits=False)) is too_large
    assert for_writer(too_large, "gemma", live(writer=HELM), Fits()) is too_large


def test_what_a_release_reverts_is_applied_with_the_patch_that_keeps_it() -> None:
    (note,) = release_note(live(writer=HELM), (SHORTER,))
    assert note.startswith(
        "Helm release 'stack': its next upgrade reverts the change; to keep it, put this into the values"
    )
    assert release_note(live(), (SHORTER,)) == release_note(live(writer=ARGO), (SHORTER,)) == ()


def test_a_patch_says_what_differs_and_no_more() -> None:
    """A strategic merge patch: lists of named things merge by name, a removal is said."""
    was = live()
    actions = (
        SetEnv(name="A", value="3"),
        SetEnv(name="B", value=None),
        SetResources(cpu=4, memory_mib=24576),
        SetStartupProbe(probe=Probe(kind="http", path="/health", port=8000, period_s=15, failure_threshold=80)),
        SetStrategy(strategy=Strategy(kind="Recreate")),
        SetScaling(min_instances=2, max_instances=2),
        SetProgressDeadline(seconds=1260),
        SetTerminationGrace(seconds=120),
    )
    patch = json.loads(patch_of(was, applied(was.config, actions), HELM))
    assert patch["kind"] == "Deployment"
    assert patch["metadata"] == {"name": "gemma"}
    pod = patch["spec"].pop("template")["spec"]
    assert pod["terminationGracePeriodSeconds"] == 120
    (container,) = pod["containers"]
    assert container == {
        "name": "vllm",
        "env": [{"name": "A", "value": "3"}, {"name": "B", "$patch": "delete"}],
        "resources": {"limits": {"cpu": "4", "memory": "24576Mi"}},
        "startupProbe": {"initialDelaySeconds": 0, "periodSeconds": 15, "timeoutSeconds": 240, "failureThreshold": 80},
    }
    strategy = {"type": "Recreate", "rollingUpdate": None}
    assert patch["spec"] == {"replicas": 2, "strategy": strategy, "progressDeadlineSeconds": 1260}
