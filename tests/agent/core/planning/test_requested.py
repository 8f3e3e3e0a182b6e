"""A requested change: proposed as it was asked for, or refused by the reason that is nearest to the asker."""

from datetime import UTC, datetime

import pytest

from agent.core.change.request import ChangeRequest
from agent.core.decision.decision import Channel
from agent.core.decision.policy import Mode, Policy, Rule
from agent.core.incident.incident import Incident
from agent.core.plan.action import (
    Lifecycle,
    LifecycleOperation,
    Restart,
    SetConcurrency,
    SetFlag,
    SetInstanceType,
    SetScaling,
)
from agent.core.plan.capacity import ContainerFit, FitOption
from agent.core.plan.plan import FitSummary, Risk
from agent.core.plan.proof import Proof
from agent.core.planning.requested import (
    DoesNotFit,
    NothingToChange,
    StateMoved,
    nearest_that_fits,
    propose_requested,
)
from agent.core.service.services import Service
from agent.core.service.serving import Live, ServingConfig, Traffic
from agent.errors import PolicyRefused
from tests.agent.core.planning.test_planning import FITS, NOT, UNSURE, Arithmetic

NOW = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
POLICY = Policy(flags={"max-model-len": "whole 256..131072", "cpu-offload-gb": "whole 0..64"}, max_concurrency=64)
CONFIG = ServingConfig(
    args=("serve", "m", "--max-model-len=16384"), accelerator="nvidia-l4", memory_mib=32_768, concurrency=8
)
WATCHED = Service(
    name="svc", platform="cloud_run", project="p", location="us-central1", model="m", accelerator="nvidia-l4",
    owner="console",
)  # fmt: skip
LONGER = (SetFlag(name="max-model-len", value="32768"),)


def a_live(**changes):
    fields = {
        "service": "svc", "platform": "cloud_run", "config": CONFIG, "uid": "u", "generation": 4, "etag": "e",
        "template": "{}", "traffic": (Traffic(percent=100),), "ready": True, "latest_ready_revision": "svc-4",
    }  # fmt: skip
    return Live(**(fields | changes))


def life(actions=LONGER, **changes):
    request = ChangeRequest(
        id="rq-000000000001", service="svc", actions=actions, why="longer documents", asker="ada",
        channel=Channel.COMMAND_LINE, verified=False, made_at=NOW, **changes,
    )  # fmt: skip
    return Incident(
        id=request.id,
        service="svc",
        platform="cloud_run",
        opened_at=NOW,
        phase_at=NOW,
        quiet_since=NOW,
        request=request,
    )


def proposed(fits, actions=LONGER, live=None, **changes):
    return propose_requested(life(actions, **changes), WATCHED, live or a_live(), fits, POLICY)


def test_another_instance_type_says_its_downtime_its_price_and_what_a_stop_loses():
    """The machine is stopped for it; the undo is the old type, and only what the policy lists may be asked for."""
    bigger = SetInstanceType(
        instance_type="g6.2xlarge", accelerator="nvidia-l4", accelerator_count=1, cpu=8, memory_mib=32_768
    )
    lost = ("its volumes go on costing: vol-1 (100 GiB gp3)",)
    live = a_live(config=CONFIG.with_(instance_type="g6.xlarge", memory_mib=16_384), when_stopped=lost)
    allowed = POLICY.with_(accelerators=("nvidia-l4",))
    made = propose_requested(life((bigger,)), WATCHED, live, Arithmetic(), allowed)
    assert made.risk is Risk.MEDIUM
    assert any("nothing answers until" in reason and "vCPU quota" in reason for reason in made.risk_reasons)
    assert made.undo.startswith("its machine is stopped, made g6.xlarge again and started")
    assert set(lost) <= set(made.notes)
    assert ("instance_type", "g6.xlarge", "g6.2xlarge") in [(d.path, d.before, d.after) for d in made.difference]
    assert not proposed(Arithmetic(), live=live).notes, "a flag stops no machine"
    with pytest.raises(PolicyRefused, match="not on the list"):
        propose_requested(life((bigger,)), WATCHED, live, Arithmetic(), POLICY)


def test_what_fits_is_proposed_with_its_difference_proof_and_risk():
    made = proposed(Arithmetic())
    assert [(d.path, d.before, d.after) for d in made.difference] == [("flag --max-model-len", "16384", "32768")]
    assert (made.proof, made.why, made.actions) == (Proof.COMPUTED, "longer documents", LONGER)
    assert made.risk is not Risk.HIGH


def test_what_does_not_fit_is_refused_with_the_nearest_that_does():
    options = (
        FitOption(flags={"kv-cache-dtype": "fp8"}, fit=FITS, note=""),
        FitOption(flags={"max-model-len": "24576"}, fit=FITS, note=""),
        FitOption(flags={}, fit=FITS, note="", elsewhere="m on 1 x nvidia-a100-40gb"),
    )
    told = Arithmetic(words={"32768": NOT}, options=options)
    with pytest.raises(DoesNotFit, match="does not fit") as refused:
        proposed(told)
    assert refused.value.exit_code == 1
    assert refused.value.hint == (
        "this does: --max-model-len 24576; or with --kv-cache-dtype fp8; or m on 1 x nvidia-a100-40gb"
    )


def test_without_a_nearest_it_says_what_to_try():
    with pytest.raises(DoesNotFit) as refused:
        proposed(Arithmetic(words={"32768": NOT}))
    assert refused.value.hint == "ask for less, or for another accelerator"
    assert nearest_that_fits(LONGER, ()) == ()


@pytest.mark.parametrize(
    "fits",
    [
        Arithmetic(words={"32768": UNSURE}),
        Arithmetic(words={"32768": FitSummary()}),
    ],
    ids=["may or may not", "not computed"],
)
def test_what_is_not_proved_is_refused(fits):
    with pytest.raises(DoesNotFit, match="nothing proves that its memory suffices"):
        proposed(fits)


def test_a_change_that_takes_no_memory_needs_no_proof():
    made = proposed(Arithmetic(words={"16384": UNSURE}), (SetConcurrency(concurrency=4),))
    assert made.proof is Proof.NOT_NEEDED


def test_what_is_so_already_is_nothing_to_change():
    with pytest.raises(NothingToChange, match="already as you want it") as told:
        proposed(Arithmetic(), (SetFlag(name="max-model-len", value="16384"),))
    assert told.value.exit_code == 0


def test_a_restart_changes_nothing_and_is_done_all_the_same():
    assert proposed(Arithmetic(), (Restart(),)).difference == ()


def test_a_state_that_moved_is_refused_unless_it_had_to_move():
    seen = a_live().target
    later = a_live(generation=5)
    with pytest.raises(StateMoved, match="generation 4, now 5"):
        proposed(Arithmetic(), live=later, target=seen)
    assert proposed(Arithmetic(), live=later, target=seen, waits_for="inc-a").actions == LONGER


@pytest.mark.parametrize(
    ("live", "says"),
    [
        (a_live(config=CONFIG.with_(command=("sh", "-c"), args=("vllm serve m --max-model-len 16384",))), "a shell"),
        (a_live(traffic=(Traffic(revision="svc-3", percent=100),)), "pinned to 'svc-3'"),
    ],
    ids=["shell", "pinned"],
)
def test_what_cannot_be_changed_by_us_says_why(live, says):
    with pytest.raises(PolicyRefused, match=says):
        proposed(Arithmetic(), live=live)


def test_without_an_adapter_it_is_for_a_person():
    with pytest.raises(PolicyRefused, match="no adapter"):
        propose_requested(life(), WATCHED, None, Arithmetic(), POLICY)


STOP = Lifecycle(operation=LifecycleOperation.STOP)
BY_HAND = "gcloud run services update svc --project p --region us-central1 --scaling 0"


@pytest.mark.parametrize("stop", [STOP, SetScaling(min_instances=0, max_instances=0)], ids=lambda a: a.kind)
def test_what_the_agent_may_not_do_comes_with_the_commands_for_a_person(stop):
    with pytest.raises(PolicyRefused, match="the list 'lifecycle' does not name 'svc'") as refused:
        proposed(Arithmetic(), (stop,))
    assert refused.value.hint == f"add 'svc' to 'lifecycle' in policy.toml, or do it by hand: {BY_HAND}"


@pytest.mark.parametrize(
    ("policy", "live"),
    [
        (Policy(lifecycle=("svc",), rules=(Rule(services=("svc",), kinds=("lifecycle",), mode=Mode.NEVER),)), a_live()),
        (Policy(lifecycle=("svc",)), None),
    ],
    ids=["a rule forbids it", "no adapter"],
)
def test_so_does_what_a_rule_forbids_and_what_no_adapter_can_do(policy, live):
    with pytest.raises(PolicyRefused) as refused:
        propose_requested(life((STOP,)), WATCHED, live, Arithmetic(), policy)
    assert refused.value.hint.endswith(f"by hand: {BY_HAND}")


@pytest.mark.parametrize("action", [STOP, SetScaling(min_instances=1, max_instances=1)], ids=lambda a: a.kind)
def test_what_an_autoscaler_would_take_back_is_refused_before_anybody_is_asked(action):
    live = a_live(scaled_by="HorizontalPodAutoscaler/svc")
    with pytest.raises(PolicyRefused, match="belongs to HorizontalPodAutoscaler/svc"):
        propose_requested(life((action,)), WATCHED, live, Arithmetic(), Policy(lifecycle=("svc",)))


def test_container_memory_counts_too():
    class Small(Arithmetic):
        def container(self, service, config):
            return ContainerFit(fits=False, sentence="container memory: does not suffice")

    with pytest.raises(DoesNotFit, match="container memory: does not suffice"):
        proposed(Small(), (SetFlag(name="cpu-offload-gb", value="5"),))
