"""Incidents in every state that a page can show, written through the real store and the stages' own save."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from agent.adapters.logs.file import FileLogs
from agent.app.catalogues import read_rules
from agent.app.stores import memory_stores
from agent.core.change.execution import Effect, EffectKind, EffectState, Execution
from agent.core.change.request import ChangeRequest, request_id, request_key
from agent.core.change.startup_figures import Figure, Observed
from agent.core.change.verification import Check, Measurement, Verdict, Verification
from agent.core.decision.decision import Channel, Choice, Person
from agent.core.decision.policy import Policy
from agent.core.diagnosis.diagnosis import Diagnosis, DiagnosisSource, Evidence, ModelExplanation
from agent.core.incident.incident import CorrelatedSignal, Incident, incident_id, plan_id
from agent.core.incident.phase import Phase
from agent.core.incident.times import Times
from agent.core.plan.action import ForPerson, SetEnv, SetFlag, SetStartupProbe, applied, difference
from agent.core.plan.plan import FitSummary, Plan, Risk, Rollout
from agent.core.plan.proof import Proof, ProofFigure
from agent.core.service.services import Services
from agent.core.service.serving import EnvVar, Probe, ServingConfig, Target
from agent.ports.stage_context import Owner, StageContext
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from agent.stages.request_change import requested_incident
from agent.stages.shared.commit import save
from agent.stages.shared.remedies import tried_remedies

START = datetime(2026, 6, 8, 14, 31, 0, tzinfo=UTC)
KEY = b"0123456789abcdef0123456789abcdef"
GIB = 2**30

PROBE_LINE = (
    'STARTUP HTTP probe failed 10 times consecutively for container "vllm-openai-1" on port 8080 path "/health". '
    "The instance was not started. Connection failed with status ERROR_CONNECTION_FAILED."
)
MEMORY_LINE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.62 GiB. GPU 0 has a total capacity of 21.96 GiB "
    "of which 2.15 GiB is free. Including non-PyTorch memory, this process has 19.81 GiB memory in use."
)


class Clock:
    """A clock that is set."""

    def __init__(self, at: datetime = START) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def step(self, seconds: float) -> datetime:
        self.at += timedelta(seconds=seconds)
        return self.at


def a_world(clock: Clock, policy: Policy | None = None) -> StageContext:
    """A world in memory that may decide."""
    stores = memory_stores(clock)
    return StageContext(
        owner=Owner.DECIDE,
        store=stores.store,
        control=stores.control,
        cards=stores.cards,
        bus=stores.open_queue(()),
        platform_of=lambda _service: None,
        logs=FileLogs(lambda _service: ()),
        notifiers={},
        model=None,
        clock=clock,
        rules=read_rules(Services(services=()), policy or Policy(), Times()),
        receipt_key=KEY,
        local=True,
        service_records=stores.service_records,
    )


CONFIG = ServingConfig(
    image="vllm/vllm-openai:nightly",
    command=("python3", "-m", "vllm.entrypoints.openai.api_server"),
    args=("--model=/mnt/models/gemma-4-26B-A4B-it-qat-w4a16-ct", "--max-model-len=16384", "--max-num-seqs=8"),
    env=(EnvVar(name="HF_HUB_OFFLINE", value="1"),),
    cpu=4,
    memory_mib=16384,
    accelerator="nvidia-l4",
    max_instances=1,
    concurrency=4,
    startup_probe=Probe(
        kind="http", path="/health", port=8080, initial_delay_s=180, period_s=60, timeout_s=10, failure_threshold=10
    ),
)
LONGER = SetStartupProbe(probe=CONFIG.startup_probe.with_(initial_delay_s=240, period_s=15, failure_threshold=63))
PROBE_ACTIONS = (LONGER, SetEnv(name="VLLM_ENGINE_READY_TIMEOUT_S", value="1185"))

FITS = FitSummary(
    fits=True,
    reason="fits",
    sentence="fits: 15.62 GiB of weights and 3.1 GiB of KV cache in 19.76 GiB",
    report={
        "fits": True,
        "reason": "fits",
        "weights_bytes": int(15.62 * GIB),
        "kv_cache_bytes": int(3.1 * GIB),
        "overheads": {
            "load_transient": int(1.31 * GIB),
            "activations": int(0.62 * GIB),
            "non_torch": int(0.24 * GIB),
            "cuda_graphs": int(0.31 * GIB),
        },
        "budget_bytes": int(19.76 * GIB),
        "total_bytes": int(21.96 * GIB),
        "shortfall_bytes": 0,
    },
)
FAILS_AT_LOAD = FitSummary(
    fits=False,
    reason="load_peak",
    sentence="does not fit: the output head needs 2.62 GiB while loading, 2.15 GiB are free",
    report={
        "fits": False,
        "reason": "load_peak",
        "weights_bytes": int(19.57 * GIB),
        "kv_cache_bytes": None,
        "overheads": {"load_transient": int(2.62 * GIB), "non_torch": int(0.24 * GIB)},
        "budget_bytes": int(20.86 * GIB),
        "total_bytes": int(21.96 * GIB),
        "shortfall_bytes": int(0.47 * GIB),
    },
)


def probe_diagnosis(at: datetime, **changes: object) -> Diagnosis:
    made = Diagnosis(
        class_="startup_probe_failed",
        signature="cloud-run-startup-probe",
        root_cause="The startup probe gave up after 780 s while the model was still loading; the start needs about 787 s.",
        confidence=0.97,
        certain=True,
        provisional=False,
        log_read=True,
        evidence=(
            Evidence(signal="s1", line=PROBE_LINE, decisive=True),
            Evidence(
                signal="log:17",
                line="Loading safetensors checkpoint shards: 100% Completed | 5/5 [11:04<00:00, 132.85s/it]",
            ),
            Evidence(
                signal="log:21", line="(EngineCore pid=372) INFO [monitor.py:34] torch.compile took 98.93 s in total"
            ),
        ),
        fields={"load_seconds": 664.24, "compile_seconds": 98.93},
        fix_actions=("increase_startup_probe",),
        made_at=at,
    )
    return made.with_(**changes)


def memory_diagnosis(at: datetime) -> Diagnosis:
    return Diagnosis(
        class_="gpu_oom_weights",
        signature="torch-oom-loading",
        root_cause="The GPU ran out of memory while loading: 2.62 GiB is the output head (262,144 x 5,376 x 2 bytes).",
        confidence=0.62,
        certain=False,
        provisional=True,
        log_read=False,
        voice=DiagnosisSource.DIFFER,
        evidence=(Evidence(signal="s1", line=MEMORY_LINE, decisive=True),),
        fields={"tried_gib": 2.62, "free_gib": 2.15, "total_gib": 21.96},
        fix_actions=("change_model_or_quantization",),
        unknown=("the instance's own log from its start was not read",),
        model_word=ModelExplanation(
            class_="kv_cache_insufficient",
            root_cause="The KV cache does not fit beside the weights.",
            unknown=("which vLLM version runs",),
            prompt="diagnose v1 3fa1c2",
            model="gemma-4-12b",
        ),
        made_at=at,
    )


def opened(clock: Clock, service: str = "gemma4-26b-qat-l4", *, run: str = "live", **more: object) -> Incident:
    at = clock.now()
    revision = f"{service}-00005-k2f"
    return Incident(
        id=incident_id(run, service, revision, 1),
        run=run,
        service=service,
        platform="cloud_run",
        revision=revision,
        opened_at=at,
        phase_at=at,
        quiet_since=at,
        signal_count=7,
        received=1,
        diagnosed_count=1,
        correlated=(
            CorrelatedSignal(
                signal="s1",
                at=at - timedelta(seconds=14),
                class_="startup_probe_failed",
                signature="cloud-run-startup-probe",
                revision=revision,
                line=PROBE_LINE,
                reason="first signal of the cause (5 times)",
            ),
            CorrelatedSignal(
                signal="s6",
                at=at - timedelta(seconds=10),
                class_="revision_not_ready",
                revision=revision,
                line=f"Ready condition status changed to False for Revision {revision}",
                reason="consequence of s1: revision not ready",
            ),
        ),
        **more,
    )


def requested(clock: Clock, service: str = "gemma4-26b-qat-l4", **changes: object) -> Incident:
    """A change that a person asked for."""
    fields = {"why": "longer documents", "asker": "ada", "channel": Channel.CONSOLE, "verified": False}
    key = request_key("ada", service, MEMORY_ACTIONS, None)
    made = {"id": request_id(key, 1), "service": service, "actions": MEMORY_ACTIONS, "made_at": clock.now()}
    return requested_incident(ChangeRequest.model_validate(fields | made | changes), "cloud_run", clock.now())


def a_plan(incident: Incident, ordinal: int, clock: Clock, **changes: object) -> Plan:
    after = applied(CONFIG, PROBE_ACTIONS)
    made = Plan(
        id=plan_id(incident.id, ordinal),
        incident=incident.id,
        run=incident.run,
        ordinal=ordinal,
        cause=incident.cause,
        why="the start needs about 787 s, the probe allowed 780 s",
        actions=PROBE_ACTIONS,
        difference=difference(CONFIG, after),
        target=Target(service=incident.service, uid="b2f1", generation=5, digest="d" * 64),
        prior_template="e" * 64,
        rollout=Rollout.IN_PLACE,
        fit_before=FITS,
        fit_after=FITS,
        cost_before_usd_per_h=0.88,
        cost_after_usd_per_h=0.88,
        decode_tokens_per_s=61.7,
        proof=Proof.NOT_NEEDED,
        risk=Risk.LOW,
        risk_reasons=("the service does not serve now", "memory does not change"),
        undo="The prior template and traffic are put back, byte by byte, as a new revision.",
        if_unanswered="If nobody answers, nothing is changed and the incident stays open; a person is told when it expires.",
        policy="f" * 64,
        made_at=clock.now(),
        expires_at=clock.now() + timedelta(minutes=30),
    )
    return made.with_(**changes)


MEMORY_ACTIONS = (
    SetFlag(name="max-model-len", value="4096"),
    SetFlag(name="cpu-offload-gb", value="5"),
    SetFlag(name="enforce-eager", value=""),
    SetFlag(name="max-num-seqs", value=None),
)


def memory_plan(incident: Incident, ordinal: int, clock: Clock) -> Plan:
    return a_plan(
        incident,
        ordinal,
        clock,
        why="the arithmetic says that it fits with 5 GB of the weights in main memory",
        actions=MEMORY_ACTIONS,
        difference=difference(CONFIG, applied(CONFIG, MEMORY_ACTIONS)),
        fit_before=FAILS_AT_LOAD,
        fit_after=FITS,
        cost_before_usd_per_h=0.88,
        cost_after_usd_per_h=1.24,
        decode_tokens_per_s=2.0,
        proof=Proof.COMPUTED,
        proof_figures=(
            ProofFigure(name="Peak memory of one device", value="21.30 GiB", source="config.json of the checkpoint"),
            ProofFigure(name="Memory of one device", value="22.03 GiB", source="config.json of the checkpoint"),
        ),
        risk=Risk.HIGH,
        risk_reasons=("answers come at 2 tokens/s", "the range of the prediction is wide"),
        notes=("one request may have 4,096 tokens, not 16,384",),
    )


def person_plan(incident: Incident, ordinal: int, clock: Clock) -> Plan:
    return a_plan(
        incident,
        ordinal,
        clock,
        why="this is for a person to do; we say what, and watch for the service to be healthy",
        actions=(
            ForPerson(
                action="fix_mount_permissions",
                instruction="Give the service account read access to the bucket or folder that holds the weights.",
                commands=(f"gcloud run services logs read {incident.service} --limit 2000",),
            ),
        ),
        difference=(),
        rollout=Rollout.BY_PERSON,
        fit_before=FitSummary(),
        fit_after=FitSummary(),
        decode_tokens_per_s=None,
        risk=Risk.MEDIUM,
        risk_reasons=("a person does it",),
        undo="put the former setting back",
    )


@dataclass
class Stage:
    """A world, its clock, and the steps of one incident's life."""

    world: StageContext
    clock: Clock

    def open(self, *args: object, **more: object) -> Incident:
        incident = opened(self.clock, *args, **more)
        return save(self.world, incident, f"opened by: {incident.correlated[0].line}", now=self.clock.now())

    def requested(self, *args: object, **more: object) -> Incident:
        incident = requested(self.clock, *args, **more)
        return save(self.world, incident, "ada asks for a change: longer documents", now=self.clock.now())

    def move(self, incident: Incident, phase: Phase, what: str, by: str = "agent", **more: object) -> Incident:
        now = self.clock.step(4)
        plan = more.get("plan") if phase is Phase.PLANNED else None
        return save(self.world, incident.move(phase, now=now, **more), what, now=now, by=by, plan=plan)

    def diagnosed(self, incident: Incident, diagnosis: Diagnosis | None = None) -> Incident:
        said = diagnosis or probe_diagnosis(self.clock.now())
        return self.move(incident, Phase.DIAGNOSED, f"diagnosed {said.class_}, rules", diagnosis=said)

    def planned(self, incident: Incident, make=a_plan, **more: object) -> Incident:
        self.clock.step(4)
        plan = make(incident, incident.plans_made + 1, self.clock, **more)
        moved = incident.move(Phase.PLANNED, now=self.clock.now(), plan=plan, plans_made=plan.ordinal)
        moved = moved.with_(decision=None, execution=None, verification=None)
        return save(self.world, moved, f"plan {plan.id}: {plan.why}", now=self.clock.now(), plan=plan)

    def asked(self, incident: Incident, make=a_plan, **more: object) -> Incident:
        planned = self.planned(incident, make, **more)
        return self.move(
            planned, Phase.ASKED, f"asked about plan {planned.plan.id}, until {planned.plan.expires_at:%H:%M:%S} UTC"
        )

    def waiting(
        self, *args: object, make=a_plan, diagnosis: Diagnosis | None = None, plan: dict | None = None, **more: object
    ) -> Incident:
        return self.asked(self.diagnosed(self.open(*args, **more), diagnosis), make, **(plan or {}))

    def said(self, incident: Incident, answer: Choice, who: str = "maria", why: str = "") -> Incident:
        self.clock.step(20)
        word = DecisionRequest(
            plan=incident.plan.id,
            answer=answer,
            by=Person(who=who, channel=Channel.COMMAND_LINE, verified=False),
            why=why,
        )
        plan_to_decision(self.world, word)
        return self.world.store.load(incident.id)

    def applying(self, incident: Incident) -> Incident:
        revision = f"{incident.service}-sre-1a2b3c4d"
        effect = Effect(
            key="1a2b3c4d5e6f70819203", kind=EffectKind.APPLY, state=EffectState.STARTED, etag="e1",
            revision=revision, operation="op/1", intended_at=self.clock.now(),
        )  # fmt: skip
        execution = Execution(
            plan=incident.plan.id, effects=(effect,), revision_before=None, revision_after=revision,
            prior_template="{}", prior_traffic="[]", prior_ready=False,
        )  # fmt: skip
        return self.move(incident, Phase.APPLYING, f"revision {revision} is coming up", execution=execution)

    def verifying(self, incident: Incident, *, good: bool | None = True) -> Incident:
        now = self.clock.step(787)
        effect = incident.execution.effects[0].with_(
            state=EffectState.DONE, message="ready after 787 s", finished_at=now
        )
        measured = (
            Measurement(check=Check.READY, good=True, says="ready after 787 s", at=now),
            Measurement(
                check=Check.COMPLETION,
                good=good,
                says="12 tokens, finished" if good else "the answer was empty",
                value=3.48,
                at=now,
            ),
            Measurement(
                check=Check.SILENCE, good=True, says="no failure of the new revision that it did not get over", at=now
            ),
            Measurement(check=Check.SPEED, good=None, says="the metrics could not be read", at=now),
            Measurement(check=Check.PREDICTION, good=False, says="slower than predicted", value=9.5, at=now),
        )
        verification = Verification(
            since=now, ready_at=now, until=now + timedelta(minutes=10), measurements=measured,
            observed=Observed(
                at=now, revision=f"{incident.service}-sre-1", vllm="0.22.1",
                figures=(
                    Figure(name="weights_gib", predicted=15.7, observed=15.62, off=0.0051, inside=True),
                    Figure(name="kv_tokens", predicted=75_000, observed=113_552, off=-0.3395, inside=False),
                    Figure(name="num_gpu_blocks", predicted=None, observed=7097, off=None),
                ),
            ),
        )  # fmt: skip
        return self.move(
            incident, Phase.VERIFYING, "rollout ended: ready after 787 s",
            execution=incident.execution.with_effect(effect), verification=verification,
        )  # fmt: skip

    def resolved(self, incident: Incident) -> Incident:
        why = "ready, answers a real completion, and the failure did not come back"
        judged = incident.with_(verification=incident.verification.with_(verdict=Verdict.RECOVERED, why=why))
        remedies = tried_remedies(judged, self.clock.now())
        return self.move(judged, Phase.RESOLVED, f"resolved: {why}", ended_why=why, remedies=remedies)

    def rolled_back(self, incident: Incident) -> Incident:
        why = "the answer was empty"
        judged = incident.with_(verification=incident.verification.with_(verdict=Verdict.NOT_RECOVERED, why=why))
        rolling = self.move(judged, Phase.ROLLING_BACK, f"rolling back: {why}")
        undo = Effect(
            key="99", kind=EffectKind.ROLL_BACK, state=EffectState.DONE, etag="e2",
            revision=f"{incident.service}-sre-99aabbcc", intended_at=self.clock.now(), finished_at=self.clock.now(),
        )  # fmt: skip
        what = "the prior template is back; it did not serve before either, so the service is still down"
        done = incident.execution.with_effect(undo)
        remedies = tried_remedies(rolling.with_(execution=done), self.clock.now())
        return self.move(
            rolling, Phase.ROLLED_BACK, what, ended_why=what,
            execution=done, remedies=remedies,
        )  # fmt: skip

    def escalated(self, incident: Incident) -> Incident:
        why = "2 remedies for the same cause were tried, and none is known to have helped"
        return self.move(incident, Phase.ESCALATED, f"escalated: {why}", ended_why=why)


def a_stage(policy: Policy | None = None) -> Stage:
    clock = Clock()
    return Stage(world=a_world(clock, policy), clock=clock)


def another_world(stage: Stage, **parts: object) -> StageContext:
    return replace(stage.world, **parts)
