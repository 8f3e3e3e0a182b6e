"""The first remedy that fits, is allowed, changes something and was not tried before."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.catalogue.load_bundled import load_default_policy
from agent.core.change.verification import Verdict
from agent.core.decision.policy import Mode, Rule
from agent.core.diagnosis.diagnosis import Diagnosis
from agent.core.incident.incident import Incident, Remedy
from agent.core.plan.action import (
    ForPerson,
    Restart,
    SetAccelerator,
    SetConcurrency,
    SetEnv,
    SetFlag,
    SetModel,
    SetResources,
    SetScaling,
    SetStartupProbe,
)
from agent.core.plan.capacity import ContainerFit, FitOption, Move, StartUp
from agent.core.plan.plan import FitSummary, Risk, Rollout
from agent.core.plan.printed_memory import Printed
from agent.core.plan.proof import Proof, ProofFigure
from agent.core.planning.longer_start import READY_TIMEOUT
from agent.core.planning.planning import propose
from agent.core.service.serving import EnvVar, Live, Probe, ServingConfig, Traffic
from agent.core.value import digest

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
FITS = FitSummary(fits=True, reason="fits", sentence="fits", report={"fits": True})
NOT = FitSummary(fits=False, reason="load_peak", sentence="does not fit", report={"fits": False})
UNSURE = FitSummary(fits=None, reason="unknown", sentence="may or may not fit", report={"fits": None})


class Arithmetic:
    """Answers as it is told; the flags decide."""

    def __init__(
        self,
        *,
        options: tuple[FitOption, ...] = (),
        words: dict[str, FitSummary] | None = None,
        enough_mib: int | None = 0,
        misses: dict[str, str] | None = None,
    ) -> None:
        self._misses = misses or {}
        self._options = options
        self._enough_mib = enough_mib
        self._words = words or {}

    def assess(self, service: str, config: ServingConfig) -> FitSummary:
        return next((fit for flag, fit in self._words.items() if flag in config.args), FITS)

    def misses(self, service: str, config: ServingConfig) -> str:
        return next((need for flag, need in self._misses.items() if flag in config.args), "")

    def takes_away(
        self,
        service: str,
        before: ServingConfig,
        after: ServingConfig,
        *,
        usd_per_h: tuple[float | None, float | None],
    ) -> str:
        return f"{usd_per_h[0]:.2f} -> {usd_per_h[1]:.2f} USD/h"

    def container(self, service: str, config: ServingConfig) -> ContainerFit:
        if self._enough_mib is None:
            return ContainerFit(sentence="container memory: how the weights are read is not known")
        figure = ProofFigure(name="Container memory", value="enough", source="computed")
        return ContainerFit(fits=(config.memory_mib or 0) >= self._enough_mib, sentence="computed", figures=(figure,))

    def cost_usd_per_h(self, service: str, config: ServingConfig) -> float | None:
        return 1.42

    def decode_tokens_per_s(self, service: str, config: ServingConfig) -> float | None:
        return None

    def options(self, service: str, config: ServingConfig) -> tuple[FitOption, ...]:
        return self._options

    def allocation(self, service: str, config: ServingConfig | None, gib: float) -> str | None:
        return None

    def start_up(self, service: str, config: ServingConfig, *, seen_s: float | None) -> StartUp | None:
        return StartUp(seconds=seen_s) if seen_s else None


def live(**changes: Any) -> Live:
    config = ServingConfig(
        args=("serve", "m", "--max-model-len", "32768", "--max-num-seqs", "8"),
        concurrency=4,
        max_instances=1,
        memory_mib=16384,
        cpu=4,
        accelerator="nvidia-l4",
        startup_probe=Probe(period_s=60, failure_threshold=10, timeout_s=60),
    )
    known = {"service": "s", "platform": "cloud_run", "config": config, "uid": "u", "generation": 5, "etag": "e"}
    return Live(**(known | {"template": "{}", "ready": False} | changes))


def incident(
    class_: str, *fixes: str, certain: bool = True, remedies: tuple[Remedy, ...] = (), **fields: Any
) -> Incident:
    diagnosis = Diagnosis(
        class_=class_,
        signature="x",
        root_cause="because",
        confidence=0.9,
        certain=certain,
        provisional=False,
        log_read=True,
        fields=fields,
        fix_actions=fixes,
        made_at=NOW,
    )
    return Incident(
        id="inc-1",
        service="s",
        platform="cloud_run",
        opened_at=NOW,
        phase_at=NOW,
        quiet_since=NOW,
        diagnosis=diagnosis,
        remedies=remedies,
    )


def remedy(actions: tuple[Any, ...], cause: str, ended: str) -> Remedy:
    proposal = digest([a.model_dump(mode="json") for a in actions])
    return Remedy(proposal=proposal, cause=cause, ended=ended, at=NOW, incident="inc-0")


def test_what_fits_is_proposed_before_what_the_catalogue_says() -> None:
    """A memory failure takes the search's first option, with its proof and price."""
    option = FitOption(flags={"max-num-seqs": "2"}, fit=FITS, note="fewer at once", decode_tokens_per_s=5.0)
    found = propose(
        incident("gpu_oom_weights", "restart"), live(), Arithmetic(options=(option,)), load_default_policy()
    )
    assert found is not None
    assert found.actions == (SetFlag(name="max-num-seqs", value="2"),)
    assert found.fit_after == FITS
    assert [(d.path, d.before, d.after) for d in found.difference] == [("flag --max-num-seqs", "8", "2")]
    assert found.risk is Risk.MEDIUM
    assert found.rollout is Rollout.IN_PLACE


def test_what_does_not_fit_is_never_proposed() -> None:
    """The log's own estimate is dropped where the arithmetic says that it does not fit."""
    asked = incident("kv_cache_insufficient", "set_flag max_model_len lower", estimated_max_model_len=16000)
    found = propose(asked, live(), Arithmetic(words={"16000": NOT}), load_default_policy())
    assert found is not None
    assert isinstance(found.actions[0], ForPerson)


def test_the_estimate_of_vllm_itself_is_taken_where_it_fits() -> None:
    """max_model_len becomes what the log printed."""
    asked = incident("kv_cache_insufficient", "set_flag max_model_len lower", estimated_max_model_len=16000)
    found = propose(asked, live(), Arithmetic(), load_default_policy())
    assert found is not None
    assert found.actions == (SetFlag(name="max-model-len", value="16000"),)


def test_what_nothing_proves_is_never_offered() -> None:
    """What is sure comes; after it a person, who is told what would have to be known."""
    asked = incident("kv_cache_insufficient", "set_flag max_model_len lower", estimated_max_model_len=16000)
    sure = FitOption(flags={"kv-cache-dtype": "fp8"}, fit=FITS, note="")
    unsure = Arithmetic(options=(sure,), words={"16000": UNSURE, "32768": UNSURE})
    first = propose(asked, live(), unsure, load_default_policy())
    assert first is not None
    assert first.actions == (SetFlag(name="kv-cache-dtype", value="fp8"),)
    assert first.proof is Proof.COMPUTED
    tried = asked.with_(remedies=(remedy(first.actions, "kv_cache_insufficient", Verdict.NOT_RECOVERED),))
    second = propose(tried, live(), unsure, load_default_policy())
    assert second is not None
    assert isinstance(second.actions[0], ForPerson)
    assert second.proof is Proof.NONE
    assert second.proof_missing
    (note,) = second.notes
    assert note.startswith("not offered, because nothing proves that its memory suffices")
    assert note.endswith("flag --max-model-len 32768 -> 16000 (may or may not fit)")


PRINTED = Printed(
    flag="max-model-len",
    asked=32768,
    most=16000,
    need="4.0 GiB",
    pool="2.0 GiB",
    line="ValueError: ...",
    place="log:7",
    revision="s-00005",
)


class TestWhatTheEnginePrinted:
    """Its own figure proves a lower value of the flag that it spoke of, where the arithmetic cannot tell."""

    def found(self, fit: FitSummary, printed: Printed = PRINTED, **changes: Any) -> Any:
        asked = incident("kv_cache_insufficient", "set_flag kv_cache_dtype fp8").with_(printed=printed)
        there = live(latest_created_revision="s-00005", **changes)
        return propose(asked, there, Arithmetic(words={"serve": fit}), load_default_policy())

    def test_it_is_offered_with_its_line(self) -> None:
        found = self.found(UNSURE)
        assert found.actions == (SetFlag(name="max-model-len", value="16000"),)
        assert found.proof is Proof.MEASURED
        assert {f.line for f in found.proof_figures} == {"ValueError: ..."}
        assert {f.place for f in found.proof_figures} == {"log:7"}
        assert any("forge" in reason for reason in found.risk_reasons)

    def test_it_never_overrides_a_computed_false(self) -> None:
        assert isinstance(self.found(NOT).actions[0], ForPerson)

    def test_of_another_start_it_proves_nothing(self) -> None:
        assert isinstance(self.found(UNSURE, PRINTED.with_(revision="s-00004")).actions[0], ForPerson)

    def test_another_length_is_another_start(self) -> None:
        assert isinstance(self.found(UNSURE, PRINTED.with_(asked=65536)).actions[0], ForPerson)

    def test_a_person_without_an_adapter_gets_it_as_commands(self) -> None:
        """The server's own log tells both its arguments and the figure."""
        args = ("serve", "m", "--max-model-len", "32768")
        asked = incident("kv_cache_insufficient", "set_flag kv_cache_dtype fp8").with_(
            printed=PRINTED.with_(args=args), logged_config=ServingConfig(command=("vllm",), args=args), platform="host"
        )
        found = propose(asked, None, Arithmetic(words={"serve": UNSURE}), load_default_policy())
        assert found is not None
        assert found.proof is Proof.MEASURED
        assert found.actions[0].commands == ("vllm serve m --max-model-len 16000",)


def test_more_container_memory_is_offered_only_where_the_load_is_computed() -> None:
    """A killed container gets no guess: without the load a person decides."""
    asked = incident("host_oom", "increase_memory_limit")
    offered = propose(asked, live(), Arithmetic(enough_mib=30_000), load_default_policy())
    assert offered is not None
    assert offered.actions == (SetResources(cpu=8.0, memory_mib=32_768),)
    assert offered.proof is Proof.COMPUTED
    task = propose(asked, live(), Arithmetic(enough_mib=None), load_default_policy())
    assert task is not None
    assert isinstance(task.actions[0], ForPerson)
    assert task.proof is Proof.NONE
    assert "how the weights are read is not known" in task.notes[0]


def test_two_instances_cost_twice_and_the_line_says_so() -> None:
    """Never "doubles" above "as before"."""
    asked = incident("queue_saturation", "scale_out")
    full = live(config=live().config.with_(concurrency=8))
    found = propose(asked, full, Arithmetic(), load_default_policy())
    assert found is not None
    assert found.actions == (SetScaling(min_instances=0, max_instances=2),)
    assert (found.cost_before_usd_per_h, found.cost_after_usd_per_h) == (1.42, 2.84)
    assert found.takes_away == "1.42 -> 2.84 USD/h"
    assert "doubles" not in found.why
    third = propose(asked, live(config=full.config.with_(max_instances=2)), Arithmetic(), load_default_policy())
    assert third is not None
    assert third.cost_after_usd_per_h == pytest.approx(4.26)


def test_what_misses_a_need_comes_after_a_persons_proved_task() -> None:
    """1.2 tokens/s is no answer while another checkpoint serves at 36."""
    slow = FitOption(flags={"max-num-seqs": "2"}, fit=FITS, note="")
    fast = FitOption(flags={"max-num-seqs": "4"}, fit=FITS, note="")
    moved = FitOption(flags={}, fit=FITS, note="", elsewhere="m2 on 1 x nvidia-l4", line="", takes_away="m2 not m")
    needy = {"2": "1.2 tokens/s, 5 are needed"}
    asked = incident("gpu_oom_weights")

    def first(*options: FitOption) -> Any:
        found = propose(asked, live(), Arithmetic(options=options, misses=needy), load_default_policy())
        assert found is not None
        return found

    assert first(slow, fast, moved).actions == (SetFlag(name="max-num-seqs", value="4"),)
    task = first(slow, moved)
    assert isinstance(task.actions[0], ForPerson)
    assert task.takes_away == "m2 not m"
    last = first(slow)
    assert last.actions == (SetFlag(name="max-num-seqs", value="2"),)
    assert "misses a need: 1.2 tokens/s, 5 are needed" in last.notes


def test_a_kill_that_the_computation_did_not_see_coming_voids_it() -> None:
    """It was computed to suffice and did not: something takes memory that is not computed."""
    asked = incident("host_oom", "increase_memory_limit")
    task = propose(asked, live(), Arithmetic(enough_mib=8_000), load_default_policy())
    assert task is not None
    assert isinstance(task.actions[0], ForPerson)
    assert "what else takes it" in task.notes[0]


@pytest.mark.parametrize("ended", [Verdict.NOT_RECOVERED, Verdict.INCONCLUSIVE, "REJECTED"])
def test_what_failed_or_was_rejected_does_not_come_again(ended: str) -> None:
    """A person follows."""
    asked = incident("engine_dead", "restart", remedies=(remedy((Restart(),), "engine_dead", ended),))
    found = propose(asked, live(), Arithmetic(), load_default_policy())
    assert found is not None
    assert isinstance(found.actions[0], ForPerson)


def test_a_remedy_of_another_cause_does_not_count() -> None:
    """A restart that failed for a hang may help a dead engine."""
    asked = incident("engine_dead", "restart", remedies=(remedy((Restart(),), "engine_hang", Verdict.NOT_RECOVERED),))
    found = propose(asked, live(), Arithmetic(), load_default_policy())
    assert found is not None
    assert found.actions == (Restart(),)


def test_what_helped_and_did_not_last_is_not_first() -> None:
    """A recurrence tries something else first."""
    fixes = ("scale_out",)
    asked = incident("queue_saturation", *fixes)
    first = propose(asked, live(), Arithmetic(), load_default_policy())
    assert first is not None
    assert first.actions == (SetConcurrency(concurrency=8),)
    again = asked.with_(remedies=(remedy(first.actions, "queue_saturation", Verdict.RECOVERED),))
    second = propose(again, live(), Arithmetic(), load_default_policy())
    assert second is not None
    assert second.actions == (SetScaling(min_instances=0, max_instances=2),)


def test_the_probe_gets_the_time_that_was_seen_and_the_engine_waits_along() -> None:
    """787 s were needed, 600 s allowed: the new budget is longer, and the engine's own patience equals it."""
    asked = incident("startup_probe_failed", "increase_startup_probe", start_up_s=787)
    found = propose(asked, live(), Arithmetic(), load_default_policy())
    assert found is not None
    probe = found.actions[0]
    assert isinstance(probe, SetStartupProbe)
    assert 787 * 1.2 < probe.probe.budget_s <= 1800
    assert probe.probe.initial_delay_s <= 240
    assert probe.probe.timeout_s <= probe.probe.period_s
    patience = found.actions[1]
    assert (patience.name, patience.value) == ("VLLM_ENGINE_READY_TIMEOUT_S", str(probe.probe.budget_s))


def test_an_engine_that_gave_up_gets_more_patience_and_the_probe_stays() -> None:
    """The probe would have waited; the engine's own limit of 600 s ended the start."""
    there = live()
    long = there.config.with_(startup_probe=Probe(period_s=15, failure_threshold=120, timeout_s=10))
    asked = incident("startup_timeout", f"set_env {READY_TIMEOUT}", start_up_s=787)
    found = propose(asked, there.with_(config=long), Arithmetic(), load_default_policy())
    assert found is not None
    assert found.actions == (SetEnv(name=READY_TIMEOUT, value="1800"),)
    assert found.why == (
        "the start may take 787 s (the log printed start up 787 s); the engine allowed 600 s; the plan allows 1.5 times that"
    )


def test_an_engine_that_gave_up_before_a_short_probe_gets_both_raised_together() -> None:
    """More patience alone would only let the probe end the start."""
    found = propose(
        incident("startup_timeout", f"set_env {READY_TIMEOUT}", start_up_s=787),
        live(),
        Arithmetic(),
        load_default_policy(),
    )
    assert found is not None
    probe, patience = found.actions
    assert isinstance(probe, SetStartupProbe)
    assert patience == SetEnv(name=READY_TIMEOUT, value=str(probe.probe.budget_s))


@pytest.mark.parametrize(
    "said",
    [EnvVar(name="VLLM_ENGINE_READY_TIMEOUT_S", value="7200"), EnvVar(name="VLLM_ENGINE_READY_TIMEOUT_S", secret="v")],
    ids=["longer already", "a secret"],
)
def test_patience_that_the_owner_set_is_never_lowered(said: EnvVar) -> None:
    """A longer probe is no reason to shorten what the engine had; a secret is not written over."""
    there = live()
    asked = incident("startup_probe_failed", "increase_startup_probe", start_up_s=787)
    found = propose(asked, there.with_(config=there.config.with_(env=(said,))), Arithmetic(), load_default_policy())
    assert found is not None
    assert [a.kind for a in found.actions] == ["set_startup_probe"]


def test_without_a_gpu_the_probe_ends_at_ten_minutes() -> None:
    """Cloud Run takes 1,800 s for a GPU's service only; a plan beyond it would be refused after the approval."""
    there = live()
    bare = there.config.with_(accelerator=None, startup_probe=Probe(period_s=60, failure_threshold=2, timeout_s=60))
    asked = incident("startup_probe_failed", "increase_startup_probe", start_up_s=787)
    found = propose(asked, there.with_(config=bare), Arithmetic(), load_default_policy())
    assert found is not None
    assert found.actions[0].probe.budget_s == 600


def test_what_policy_forbids_is_not_proposed() -> None:
    """Never means never; a person is asked instead."""
    never = load_default_policy().with_(rules=(Rule(services=("s",), kinds=("restart",), mode=Mode.NEVER),))
    found = propose(incident("engine_dead", "restart"), live(), Arithmetic(), never)
    assert found is not None
    assert isinstance(found.actions[0], ForPerson)


def test_without_an_adapter_a_person_gets_the_instruction() -> None:
    """No description, no change; the fix stands as words."""
    found = propose(incident("quota_exceeded", "fix_quota"), None, Arithmetic(), load_default_policy())
    assert found is not None
    assert found.rollout is Rollout.BY_PERSON
    assert "quota" in found.actions[0].instruction.lower()


def test_a_platform_without_an_adapter_is_known_by_its_signals() -> None:
    """Nobody describes it to us, and the person still gets that platform's own commands."""
    asked = incident("auth", "fix_auth_token").with_(platform="kubernetes")
    found = propose(asked, None, Arithmetic(), load_default_policy())
    assert found is not None
    assert found.actions[0].commands[0] == 'kubectl logs deployment/s --namespace "$NAMESPACE" --previous --tail 2000'
    assert found.undo.startswith("kubectl ")


def test_a_person_is_told_where_the_log_of_a_server_here_stands() -> None:
    """The platform knows the file; a service manager is not taken for granted."""
    found = propose(
        incident("engine_dead", "none_code_bug"),
        live().with_(platform="host", log_path="/s/server.log"),
        Arithmetic(),
        load_default_policy(),
    )
    assert found is not None
    (hand,) = found.actions
    assert isinstance(hand, ForPerson)
    assert hand.commands == ("tail -n 2000 /s/server.log",)


def test_where_a_card_is_spare_the_new_revision_comes_up_beside_the_old() -> None:
    """Staged only where the service answers now and an accelerator is free."""
    calm = live(ready=True, spare_accelerator=True, latest_ready_revision="s-00004")
    found = propose(incident("engine_hang", "restart"), calm, Arithmetic(), load_default_policy())
    assert found is not None
    assert found.rollout is Rollout.STAGED


@pytest.mark.parametrize("share", [100, 50])
def test_where_traffic_is_pinned_nobody_is_asked_for_a_change_in_place(share: int) -> None:
    """It would be refused after the approval, or end inconclusive; with a spare card it is staged all the same."""
    traffic = (Traffic(revision="s-00004", percent=share), Traffic(percent=100 - share))
    pinned = live(ready=True, latest_ready_revision="s-00004", traffic=traffic)
    found = propose(incident("engine_hang", "restart"), pinned, Arithmetic(), load_default_policy())
    assert found is not None
    assert isinstance(found.actions[0], ForPerson)
    assert "pinned to 's-00004'" in found.notes[-1]
    spare = pinned.with_(spare_accelerator=True)
    staged = propose(incident("engine_hang", "restart"), spare, Arithmetic(), load_default_policy())
    assert staged is not None
    assert staged.rollout is Rollout.STAGED


def test_an_uncertain_cause_is_a_high_risk() -> None:
    """Whatever the arithmetic says."""
    found = propose(incident("engine_dead", "restart", certain=False), live(), Arithmetic(), load_default_policy())
    assert found is not None
    assert found.risk is Risk.HIGH


def test_a_flag_outside_the_allow_list_is_never_proposed() -> None:
    """Even where the search would like it."""
    option = FitOption(flags={"trust-remote-code": ""}, fit=FITS, note="")
    found = propose(incident("gpu_oom_weights"), live(), Arithmetic(options=(option,)), load_default_policy())
    assert found is not None
    assert isinstance(found.actions[0], ForPerson)


def test_a_flag_inside_a_shell_line_is_for_a_person() -> None:
    """Nobody is asked to approve a change that cannot be made."""
    option = FitOption(flags={"max-num-seqs": "2"}, fit=FITS, note="")
    shell = live(config=live().config.with_(command=("sh", "-c"), args=("vllm serve m --max-num-seqs 8",)))
    found = propose(incident("gpu_oom_weights"), shell, Arithmetic(options=(option,)), load_default_policy())
    assert found is not None
    assert isinstance(found.actions[0], ForPerson)


def test_the_difference_shows_what_a_flag_in_the_command_was() -> None:
    """The person who approves sees the value that is replaced, not an empty place."""
    option = FitOption(flags={"max-num-seqs": "2"}, fit=FITS, note="")
    there = live(config=live().config.with_(command=("vllm", "serve", "m", "--max-num-seqs", "8"), args=()))
    found = propose(incident("gpu_oom_weights"), there, Arithmetic(options=(option,)), load_default_policy())
    assert found is not None
    assert [(d.path, d.before, d.after) for d in found.difference] == [("flag --max-num-seqs", "8", "2")]


MOVE = Move(model="org/m2", accelerator="nvidia-rtx-pro-6000", cpu=20, memory_mib=81920)
ELSEWHERE = FitOption(flags={"max-num-seqs": "2"}, fit=FITS, note="", elsewhere="there", line="x", move=MOVE)


def test_a_card_and_a_checkpoint_that_policy_names_are_moved_to() -> None:
    """Card, its shape, checkpoint and flags in one plan; clients go on asking by the former name."""
    allowed = load_default_policy().with_(accelerators=("nvidia-rtx-pro-6000",), models=("org/m2",))
    found = propose(incident("gpu_oom_weights"), live(), Arithmetic(options=(ELSEWHERE,)), allowed)
    assert found is not None
    assert found.actions == (
        SetAccelerator(accelerator="nvidia-rtx-pro-6000", cpu=20, memory_mib=81920),
        SetModel(model="org/m2"),
        SetFlag(name="max-num-seqs", value="2"),
        SetFlag(name="served-model-name", value="m"),
    )
    assert found.fit_after == FITS
    assert {"accelerator", "cpu", "memory_mib", "model", "flag --served-model-name"} <= {
        d.path for d in found.difference
    }


@pytest.mark.parametrize("lists", [{}, {"models": ("org/m2",)}, {"accelerators": ("nvidia-rtx-pro-6000",)}])
def test_a_move_that_policy_does_not_name_is_for_a_person(lists: dict[str, Any]) -> None:
    """The default lists are empty."""
    found = propose(
        incident("gpu_oom_weights"), live(), Arithmetic(options=(ELSEWHERE,)), load_default_policy().with_(**lists)
    )
    assert found is not None
    assert isinstance(found.actions[0], ForPerson)


def test_a_checkpoint_in_a_mounted_folder_is_moved_by_people() -> None:
    """Whether the other one lies there too is nothing that we know."""
    allowed = load_default_policy().with_(accelerators=("nvidia-rtx-pro-6000",), models=("org/m2",))
    mounted = live(config=live().config.with_(args=("serve", "/mnt/models/m")))
    found = propose(incident("gpu_oom_weights"), mounted, Arithmetic(options=(ELSEWHERE,)), allowed)
    assert found is not None
    assert isinstance(found.actions[0], ForPerson)


def test_another_checkpoint_is_for_a_person() -> None:
    """We do not change images or checkpoints by ourselves; the instruction says which and how."""
    option = FitOption(flags={}, fit=FITS, note="smaller", elsewhere="m2 on 1 x nvidia-l4", line="--max-model-len 4096")
    found = propose(incident("gpu_oom_weights"), live(), Arithmetic(options=(replace(option),)), load_default_policy())
    assert found is not None
    assert found.actions[0].instruction == "Serve m2 on 1 x nvidia-l4 with: --max-model-len 4096"


def test_what_is_over_budget_is_not_offered_and_the_plan_that_is_taken_says_why() -> None:
    """The next remedy is offered instead, with the figures of the dearer one beside it."""
    allowed = load_default_policy().with_(accelerators=("nvidia-rtx-pro-6000",), models=("org/m2",))
    cheap = FitOption(flags={"max-num-seqs": "2"}, fit=FITS, note="")
    asked: list[tuple[Any, ...]] = []

    def over(actions: tuple[Any, ...]) -> str:
        asked.append(actions)
        return "all would cost 9.00 USD/h with it" if any(isinstance(a, SetAccelerator) for a in actions) else ""

    fits = Arithmetic(options=(ELSEWHERE, cheap))
    dear = propose(incident("gpu_oom_weights"), live(), fits, allowed)
    assert dear is not None
    assert isinstance(dear.actions[0], SetAccelerator)
    found = propose(incident("gpu_oom_weights"), live(), fits, allowed, over)
    assert found is not None
    assert found.actions == (SetFlag(name="max-num-seqs", value="2"),)
    (note,) = [n for n in found.notes if n.startswith("not offered, because of the budget")]
    assert "accelerator" in note
    assert note.endswith("(all would cost 9.00 USD/h with it)")
    assert dear.actions in asked


def test_where_everything_is_over_budget_a_person_gets_the_task_and_the_reasons() -> None:
    """Nothing is offered that policy would refuse."""
    option = FitOption(flags={"max-num-seqs": "2"}, fit=FITS, note="")
    fits = Arithmetic(options=(option,))
    task = propose(incident("gpu_oom_weights"), live(), fits, load_default_policy(), lambda _: "too dear")
    assert task is not None
    assert not task.for_approval
    assert any("because of the budget: flag --max-num-seqs" in note for note in task.notes)
