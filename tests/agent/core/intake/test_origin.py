"""Which service a body is about, whether it is watched, and that ours never is."""

from datetime import UTC, datetime

import pytest

from agent.core.intake.origin import Ignored, IgnoredBecause, Reading, ResourceRef, watched_by
from agent.core.intake.read import signals_of
from agent.core.service.services import parse_services


def because(taken):
    assert taken.signals == ()
    return [item.because for item in taken.ignored]


@pytest.mark.parametrize("name", ["sre-ingest", "sre-", "gemma4-vllm"])
def test_our_own_services_are_never_a_source(sample, name):
    """By prefix or by the list of our own, an error of ours cannot open an incident."""
    entry = sample("log_vllm_engine_dead")
    entry["resource"]["labels"]["service_name"] = name
    taken = signals_of(entry, Reading(own_services=frozenset({"gemma4-vllm"})))
    assert because(taken) == [IgnoredBecause.OWN_SERVICE]


def test_a_function_is_ours_by_its_label_whatever_its_name(sample):
    """The label that Cloud Functions put on their services decides too, for alerts as well."""
    entry = sample("log_vllm_engine_dead")
    entry["labels"]["goog-managed-by"] = "cloudfunctions"
    assert because(signals_of(entry, Reading())) == [IgnoredBecause.OWN_SERVICE]
    body = sample("monitoring_alert_v1_2_open_cloud_run")
    body["incident"]["metadata"]["user_labels"] = {"goog-managed-by": "cloudfunctions"}
    assert because(signals_of(body, Reading())) == [IgnoredBecause.OWN_SERVICE]


def test_being_watched_does_not_make_ours_a_source(sample):
    """Even a lookup that would take it does not get asked."""
    entry = sample("log_vllm_engine_dead")
    entry["resource"]["labels"]["service_name"] = "sre-ingest"
    assert because(signals_of(entry, Reading(watched=lambda place: "gemma"))) == [IgnoredBecause.OWN_SERVICE]


def test_a_service_that_is_not_watched_is_ignored_with_its_name(sample):
    """Acknowledged, not quarantined: nothing is wrong with the body."""
    taken = signals_of(sample("log_vllm_engine_dead"), Reading(watched=lambda place: None))
    assert taken.ignored == (Ignored(because=IgnoredBecause.NOT_WATCHED, what="gemma4-vllm"),)


def test_the_lookup_is_asked_with_everything_that_tells_services_apart(sample):
    """Name, platform, project, location and labels; its answer is the signal's service."""
    asked = []

    def watched(place):
        asked.append(place)
        return "gemma"

    (signal,) = signals_of(sample("log_vllm_engine_dead"), Reading(watched=watched)).signals
    assert signal.service == "gemma"
    (place,) = asked
    assert (place.service, place.platform, place.project, place.location) == (
        "gemma4-vllm",
        "cloud_run",
        "example-project",
        "us-central1",
    )
    assert place.labels["revision_name"] == "gemma4-vllm-00007-abc"


def test_an_alert_may_be_watched_under_any_of_its_names(sample):
    """Where the first candidate is not watched the next is asked, such as the model's name."""
    body = sample("alertmanager_webhook_v4")
    watched = {"google/gemma-4-31B-it": "gemma"}
    (signal,) = signals_of(body, Reading(watched=lambda place: watched.get(place.service))).signals
    assert signal.service == "gemma"


def test_the_clock_is_asked_only_where_no_time_of_arrival_is_known():
    """Reading the time costs a question to the store; most bodies bring their own."""
    asked = []

    def clock():
        asked.append(1)
        return datetime(2026, 11, 21, tzinfo=UTC)

    known = datetime(2026, 11, 20, tzinfo=UTC)
    assert Reading(received_at=known, clock=clock).arrived() == known
    assert asked == []
    assert Reading(clock=clock).arrived() == datetime(2026, 11, 21, tzinfo=UTC)
    assert Reading().arrived() is None


SERVICES = parse_services(
    """
    [[service]]
    name = "gemma4-vllm"
    platform = "cloud_run"
    project = "p"
    location = "us-central1"
    model = "google/gemma-4-31B-it"
    accelerator = "nvidia-l4"
    owner = "console"

    [[service]]
    name = "gemma-k8s"
    platform = "kubernetes"
    model = "google/gemma-4-31B-it"
    accelerator = "nvidia-l4"
    owner = "console"
    labels = { namespace_name = "inference" }
    """
)


@pytest.mark.parametrize(
    ("place", "found"),
    [
        (ResourceRef(service="gemma4-vllm", platform="cloud_run", project="p", location="us-central1"), "gemma4-vllm"),
        (ResourceRef(service="gemma4-vllm", platform="unknown"), "gemma4-vllm"),
        (ResourceRef(service="gemma4-vllm", platform="cloud_run", project="other", location="us-central1"), None),
        (ResourceRef(service="gemma4-vllm", platform="cloud_run", project="p", location="europe-west4"), None),
        (ResourceRef(service="vllm", platform="kubernetes", labels={"namespace_name": "inference"}), "gemma-k8s"),
        (ResourceRef(service="vllm", platform="kubernetes", labels={"namespace_name": "batch"}), None),
        (ResourceRef(service="unknown", platform="cloud_run"), None),
    ],
    ids=["all agree", "an alert without a place", "other project", "other region", "by label", "other label", "nobody"],
)
def test_a_place_is_a_watched_service_by_name_or_by_mark(place, found):
    """Project and location must agree where both sides name them."""
    assert watched_by(SERVICES)(place) == found


IN_CLUSTERS = parse_services(
    """
    [[service]]
    name = "gemma"
    platform = "kubernetes"
    namespace = "llm"
    workload = "deployment/vllm"
    model = "m"
    accelerator = "nvidia-l4"
    owner = "console"

    [[service]]
    name = "vllm"
    platform = "kubernetes"
    namespace = "batch"
    workload = "statefulset/worker"
    model = "m"
    accelerator = "nvidia-l4"
    owner = "console"

    [[service]]
    name = "twin"
    platform = "kubernetes"
    namespace = "other"
    workload = "statefulset/worker"
    model = "m"
    accelerator = "nvidia-l4"
    owner = "console"
    """
)


@pytest.mark.parametrize(
    ("name", "namespace", "found"),
    [
        ("vllm", "llm", "gemma"),
        ("worker", "batch", "vllm"),
        ("worker", "other", "twin"),
        ("worker", "", None),
        ("vllm", "", "gemma"),
        ("vllm", "elsewhere", None),
        ("gemma", "llm", "gemma"),
        ("gemma", "elsewhere", None),
        ("nobody", "llm", None),
    ],
    ids=[
        "by workload, not the service of that name",
        "one of two in its namespace",
        "the other one",
        "two of that name, no namespace",
        "one of that workload, no namespace",
        "that name in another namespace",
        "by the service's own name",
        "its own name in another namespace",
        "nobody",
    ],
)
def test_a_workload_of_a_cluster_is_the_service_that_names_it(name, namespace, found):
    """A pod of the same name in another namespace is somebody else's."""
    place = ResourceRef(service=name, platform="kubernetes", namespace=namespace)
    assert watched_by(IN_CLUSTERS)(place) == found


def test_an_event_and_an_alert_of_a_pod_find_their_service():
    """As kubernetes-event-exporter and Alertmanager with kube-state-metrics post them."""
    reading, pod = Reading(watched=watched_by(IN_CLUSTERS)), "vllm-7d9f8b6c5-x2x4z"
    about = {"kind": "Pod", "name": pod, "namespace": "llm"}
    event = {"involvedObject": about, "reason": "BackOff", "message": "Back-off restarting failed container",
             "type": "Warning", "lastTimestamp": "2026-11-22T10:00:00Z"}  # fmt: skip
    (told,) = signals_of(event, reading).signals
    assert (told.service, told.revision, told.instance) == ("gemma", "vllm-7d9f8b6c5", pod)
    labels = {"alertname": "KubePodCrashLooping", "exported_namespace": "llm", "exported_pod": pod,
              "namespace": "monitoring", "pod": "kube-state-metrics-5d5c9b6d4f-bcdfg", "service": "kube-state-metrics"}  # fmt: skip
    alert = {"status": "firing", "labels": labels, "startsAt": "2026-11-22T10:00:00Z", "fingerprint": "f"}
    (told,) = signals_of({"version": "4", "groupKey": "g", "alerts": [alert]}, reading).signals
    assert (told.service, told.instance) == ("gemma", pod)
