"""What differs from the declared or approved state, and what was changed when by whom."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.core.change.config_drift import Drift, drift_of, record_of, unpinned
from agent.core.plan.action import NO_SERVICE, flat
from agent.core.plan.lifecycle import absent
from agent.core.service.declared import Declared
from agent.core.service.services import Service
from agent.core.service.serving import EnvVar, Probe, ServingConfig

NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
CONFIG = ServingConfig(
    image="vllm/vllm-openai:v0.32.0",
    args=("serve", "google/gemma", "--max-num-seqs", "8", "--gpu-memory-utilization=0.90", "--port", "8080"),
    env=(EnvVar(name="HF_HUB_OFFLINE", value="1"),),
    accelerator="nvidia-l4",
    min_instances=0,
    max_instances=2,
    startup_probe=Probe(kind="http", path="/health", port=8080, period_s=15, timeout_s=5, failure_threshold=56),
)
DECLARED = Declared(
    image="vllm/vllm-openai:v0.32.0",
    flags="--max-num-seqs 8 --gpu-memory-utilization 0.9",
    env={"HF_HUB_OFFLINE": "1"},
    min_instances=0,
    max_instances=2,
    startup_probe=CONFIG.startup_probe,
)
SERVICE = Service(
    name="gemma",
    platform="cloud_run",
    project="p",
    location="us-central1",
    model="google/gemma",
    accelerator="nvidia-l4",
    owner="console",
    declared=DECLARED,
)
LIVE = absent("gemma", "cloud_run").with_(
    config=CONFIG, uid="u1", generation=4, etag='"e"', ready=True, latest_created_revision="gemma-1"
)


def changed(**fields: object) -> dict[str, str | None]:
    return flat(CONFIG.with_(**fields))


def paths(state: dict[str, str | None], service: Service = SERVICE) -> dict[str, tuple[str | None, str | None]]:
    return {row.path: (row.wanted, row.live) for row in drift_of(service, state, None)}


def test_what_is_as_declared_is_no_drift() -> None:
    """Order and form of flags do not matter, nor does what the platform adds: model, host and port."""
    assert paths(flat(CONFIG)) == {}


@pytest.mark.parametrize(
    ("fields", "rows"),
    [
        (
            {"args": ("serve", "google/gemma", "--max-num-seqs", "32", "--gpu-memory-utilization=0.90")},
            {"flag --max-num-seqs": ("8", "32")},
        ),
        (
            {"args": (*CONFIG.args, "--enforce-eager")},
            {"flag --enforce-eager": (None, "")},
        ),
        ({"args": CONFIG.args[:4]}, {"flag --gpu-memory-utilization": ("0.9", None)}),
        ({"image": "vllm/vllm-openai:nightly"}, {"image": ("vllm/vllm-openai:v0.32.0", "vllm/vllm-openai:nightly")}),
        ({"max_instances": 4}, {"max_instances": ("2", "4")}),
        ({"accelerator": "nvidia-rtx-pro-6000"}, {"accelerator": ("nvidia-l4", "nvidia-rtx-pro-6000")}),
        ({"env": ()}, {"env HF_HUB_OFFLINE": ("1", None)}),
        (
            {"startup_probe": CONFIG.startup_probe.with_(failure_threshold=10)},
            {"startup_probe failure_threshold": ("56", "10")},
        ),
    ],
    ids=["flag", "extra flag", "missing flag", "image", "scaling", "accelerator", "variable", "probe"],
)
def test_each_setting_that_differs_is_a_row(fields, rows) -> None:
    """What is declared against what runs, and nothing besides."""
    assert paths(changed(**fields)) == rows


def test_what_is_not_declared_is_not_compared() -> None:
    """A declared image says nothing of the flags; the accelerator is declared of every service."""
    image = SERVICE.with_(declared=Declared(image=CONFIG.image))
    assert paths(changed(args=("serve", "google/gemma", "--enforce-eager"), max_instances=9), image) == {}
    bare = SERVICE.with_(declared=None)
    assert paths(changed(image="other"), bare) == {}
    assert paths(changed(accelerator="tpu-v5e"), bare) == {"accelerator": ("nvidia-l4", "tpu-v5e")}


def test_without_a_declaration_the_last_approved_state_counts() -> None:
    """A revision with our stamp is what was approved; what comes after without one is drift, until it is as before."""
    service = SERVICE.with_(declared=None)
    live = LIVE.with_(stamps={"gemma-1": "k1"})
    first = record_of(None, service, live, redact=str, now=NOW)
    assert (first.drift, first.approved) == ((), flat(CONFIG))
    by_hand = live.with_(
        config=CONFIG.with_(max_instances=4),
        latest_created_revision="gemma-2",
        changed_by="ada@example.com",
        changed_at=NOW + timedelta(minutes=3),
    )
    second = record_of(first, service, by_hand, redact=str, now=NOW + timedelta(minutes=5))
    assert second.drift == (Drift(path="max_instances", wanted="2", live="4", against="approved"),)
    assert second.drift_since == NOW + timedelta(minutes=5)
    assert [(c.at, c.by, c.ours) for c in second.changes] == [(NOW + timedelta(minutes=3), "ada@example.com", False)]
    assert record_of(second, service, by_hand, redact=str, now=NOW + timedelta(hours=1)) is second
    third = record_of(second, service, live, redact=str, now=NOW + timedelta(hours=2))
    assert (third.drift, third.drift_since, len(third.changes)) == ((), None, 2)


def test_what_somebody_changes_beside_our_revision_is_theirs() -> None:
    """Cloud Run's manual scaling and Kubernetes' replicas make no revision: ours serves on, and says nothing of them."""
    service = SERVICE.with_(declared=None)
    ours = LIVE.with_(stamps={"gemma-1": "k1"})
    first = record_of(None, service, ours, redact=str, now=NOW)
    scaled = ours.with_(config=CONFIG.with_(max_instances=0), changed_by="ada@example.com")
    second = record_of(first, service, scaled, redact=str, now=NOW + timedelta(minutes=5))
    assert [(c.by, c.ours) for c in second.changes] == [("ada@example.com", False)]
    assert second.drift == (Drift(path="max_instances", wanted="2", live="0", against="approved"),)


def test_what_our_plan_changed_without_a_revision_is_ours() -> None:
    """A stop by an approved request: no new revision, no drift."""
    service = SERVICE.with_(declared=None)
    first = record_of(None, service, LIVE.with_(stamps={"gemma-1": "k1"}), redact=str, now=NOW)
    asked = []

    def planned(rows):
        asked.append([(row.path, row.before, row.after) for row in rows])
        return True

    stopped = LIVE.with_(config=CONFIG.with_(max_instances=0), changed_by="sre-on-decision@p.example")
    second = record_of(first, service, stopped, redact=str, now=NOW + timedelta(minutes=5), planned=planned)
    assert asked == [[("max_instances", "2", "0")]]
    assert [(c.by, c.ours) for c in second.changes] == [("", True)]
    assert (second.drift, second.approved) == ((), second.state)


def test_secrets_do_not_reach_the_record_and_make_no_drift() -> None:
    """A variable that looks like a secret is kept redacted, on both sides."""

    def redact(text: str) -> str:
        return text.replace("hunter2", "[secret]")

    env = (*CONFIG.env, EnvVar(name="VLLM_SOMETHING", value="hunter2"))
    service = SERVICE.with_(declared=DECLARED.with_(env={"VLLM_SOMETHING": "hunter2"}))
    record = record_of(None, service, LIVE.with_(config=CONFIG.with_(env=env)), redact=redact, now=NOW)
    assert "hunter2" not in record.model_dump_json()
    assert record.drift == ()


@pytest.mark.parametrize(
    ("image", "says"),
    [
        ("vllm/vllm-openai:v0.32.0", ""),
        (f"vllm/vllm-openai@sha256:{'a' * 64}", ""),
        (f"vllm/vllm-openai:nightly@sha256:{'a' * 64}", ""),
        ("vllm/vllm-openai:nightly", "the tag :nightly moves"),
        ("vllm/vllm-openai:latest-cu130", "the tag :latest-cu130 moves"),
        ("registry.example:5000/vllm", "no tag is named, which is :latest"),
        ("", ""),
    ],
)
def test_an_image_that_may_change_by_itself_is_named(image: str, says: str) -> None:
    """A digest pins whatever the tag says; a port of the registry is no tag."""
    assert unpinned(image).endswith(says)
    assert bool(unpinned(image)) == bool(says)


def test_a_service_that_is_not_there_has_no_settings() -> None:
    """Every declared setting is then missing."""
    assert flat(NO_SERVICE) == {}
    assert "image" in paths(flat(NO_SERVICE))
