"""The journey on real parts: emulators and stand-ins on the real wires, the functions as they are deployed."""

import json
from pathlib import Path

import pytest

from agent.adapters.platform.cloud_run.describe import config_of
from agent.core.change.execution import EffectKind, effect_key
from agent.core.change.verification import Check, Verdict
from agent.core.decision.audit import Soundness, verify
from agent.core.incident.phase import Phase
from agent.core.plan.action import difference
from agent.core.service.serving import EFFECT_LABEL, STAMP_LABELS
from agent.presentation.slack_card import APPROVE
from tests.free_port import free_port
from tests.journeys import on_cloud as cloud

ROOT = Path(__file__).resolve().parents[2]
MENDED, UNDONE, TWICE = SERVICES = ("gemma4-26b-qat-l4", "gemma4-26b-undone", "gemma4-26b-twice")

pytestmark = [pytest.mark.emulator, pytest.mark.xdist_group("real_parts")]


@pytest.fixture(scope="module")
def project(pubsub_emulator, firestore_emulator, tmp_path_factory):
    region = cloud.parts.Region("real-parts")
    region.put(MENDED)
    region.put(UNDONE, serving=f"{UNDONE}-00004-h7x")
    region.put(TWICE)
    folder = tmp_path_factory.mktemp("functions")
    try:
        running = cloud.Project(pubsub_emulator, firestore_emulator, region, folder, free_port, SERVICES)
        yield running
        running.close()
    finally:
        region.close()


def copy_of(message):
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def bare(template):
    """A template's bytes without revision name and stamp."""
    copy = copy_of(template)
    copy.revision = ""
    for label in STAMP_LABELS:
        copy.labels.pop(label, None)
    return copy.SerializeToString(deterministic=True)


def without(plan, template, prior):
    """A template's bytes with what the plan names put back as it was before."""
    copy = copy_of(template)
    container, before = copy.containers[0], prior.containers[0]
    for path in {d.path.split()[0] for d in plan.difference} - {"env"}:
        getattr(container, path).CopyFrom(getattr(before, path))
    added = {d.path.removeprefix("env ") for d in plan.difference if d.path.startswith("env ") and d.before is None}
    kept = [e for e in container.env if e.name not in added]
    del container.env[:]
    container.env.extend(kept)
    return bare(copy)


def applied_exactly_once(project, incident, prior):
    """One update that was no dry run; it names the template alone, and differs by what was planned and the stamp."""
    (update,) = project.region.updates(incident.service)
    sent = update.service.template
    assert list(update.update_mask.paths) == ["template"]
    assert difference(config_of(prior.template), config_of(sent)) == incident.plan.difference != ()
    assert without(incident.plan, sent, prior.template) == bare(prior.template) != bare(sent)
    effect = incident.execution.effect(EffectKind.APPLY)
    assert (sent.revision, sent.labels[EFFECT_LABEL]) == (effect.revision, effect.key)
    assert project.region.service(incident.service).traffic == prior.traffic


def nothing_is_left(project, service):
    """No message was given up, none waits, the record is sound, and every function wrote what Cloud Logging reads."""
    project.until(service, lambda _: project.store.unsent() == ())
    assert project.pubsub.pull(project.dead_pull, wait_s=0.1) == []
    assert project.quarantine.rows() == ()
    assert verify(project.control.audit(10_000)).soundness is Soundness.SOUND
    assert project.slack.errors == []
    for name, function in project.functions.items():
        told, other = function.told()
        assert other == [], name
        assert {event["severity"] for event in told} <= {"INFO", "WARNING"}, told


def asked_with(region):
    """The audiences of the ID tokens with which the model was asked; none where a question came without."""
    asked = [headers for method, _, headers, _ in region.vllm.seen if method == "POST"]
    return {cloud.parts.audience_of(headers.get("X-Serverless-Authorization", "")) for headers in asked}


def on_record(project, incident):
    return [row.kind for row in project.control.audit(10_000) if row.incident == incident.id]


def test_a_failed_rollout_ends_resolved_after_one_update_of_exactly_the_planned_difference(project):
    """Sink, push, intake, the instance's own log, plan, a press in Slack, one update, a real completion, the end."""
    prior = copy_of(project.region.service(MENDED))
    project.sink(project.region.failed_start(MENDED))
    asked = project.asked(MENDED)
    assert (asked.diagnosis.class_, asked.diagnosis.certain) == ("startup_probe_failed", True)
    assert project.region.updates(MENDED) == []
    assert project.press(APPROVE) == [(200, b"")]
    done = project.until(MENDED, lambda i: i.ended and not project.slack.buttons())
    assert (done.phase, done.verification.verdict) == (Phase.RESOLVED, Verdict.RECOVERED)
    assert done.decision.name == "Ada"
    assert len(project.incidents(MENDED)) == 1
    applied_exactly_once(project, done, prior)
    after = project.region.service(MENDED)
    assert (
        after.latest_ready_revision
        == after.latest_created_revision
        == f"{after.name}/revisions/{done.execution.revision_after}"
    )
    assert done.verification.latest(Check.COMPLETION).good is True
    assert asked_with(project.region) == {after.uri}
    (weights,) = [f for f in done.verification.observed.figures if f.name == "weights_gib"]
    assert (weights.observed, weights.inside) == (15.62, True)  # read back from the new instance's own log
    nothing_is_left(project, MENDED)


def test_a_rollout_that_never_becomes_ready_ends_on_the_exact_prior_template(project):
    """Signed by webhook, given up by its longer probe, put back byte by byte; the revision that served goes on serving."""
    prior = copy_of(project.region.service(UNDONE))
    project.sink(project.region.failed_start(UNDONE))
    asked = project.asked(UNDONE)
    project.region.doomed = True
    status, said = project.answer_by_webhook(asked.plan.id, asked.plan.digest, "approve")
    assert (status, json.loads(said)["who"]) == (200, "Ada")
    back = project.until(UNDONE, lambda i: i.ended or (i.plans_made > 1 and i.phase is Phase.ASKED))
    applied, undone = project.region.updates(UNDONE)
    for update, kind in ((applied, EffectKind.APPLY), (undone, EffectKind.ROLL_BACK)):
        assert update.service.template.labels[EFFECT_LABEL] == effect_key(back.id, asked.plan.digest, kind)
    after = project.region.service(UNDONE)
    assert bare(after.template) == bare(prior.template) == bare(undone.service.template)
    assert (after.traffic, after.latest_ready_revision) == (prior.traffic, prior.latest_ready_revision)
    assert back.phase is Phase.ASKED
    assert [r.ended for r in back.remedies] == [Verdict.NOT_RECOVERED]
    said = f"the prior template is back; it did not come up before either, and {UNDONE}-00004-h7x serves as before"
    assert said in [event.what for event in project.store.timeline(back.id) if event.phase is Phase.ROLLED_BACK]
    assert len(project.incidents(UNDONE)) == 1
    assert on_record(project, back) == ["decision.approve", "effect.apply", "effect.roll_back"]
    nothing_is_left(project, UNDONE)


def test_each_message_delivered_twice_is_the_same_one_change(project):
    """Every subscription twice, an alert among the entries, a double click: one incident, one decision, one update."""
    project.region.doomed = False
    project.push("again")
    prior = copy_of(project.region.service(TWICE))
    posted = len(project.slack.messages)
    project.alert("monitoring_alert_v1_2_open_cloud_run.json", TWICE)
    project.sink(project.region.failed_start(TWICE))
    project.asked(TWICE)
    assert project.press(APPROVE, times=2) == [(200, b""), (200, b"")]
    done = project.until(TWICE, lambda i: i.ended and not project.slack.buttons())
    assert (done.phase, done.verification.verdict) == (Phase.RESOLVED, Verdict.RECOVERED)
    assert len(project.incidents(TWICE)) == 1
    assert on_record(project, done) == ["decision.approve", "effect.apply"]
    assert len(project.slack.messages) == posted + 1
    assert len(project.store.signals(done.id)) == 4
    applied_exactly_once(project, done, prior)
    nothing_is_left(project, TWICE)
