"""services.toml decides which place is which service."""

import pytest

from agent.core.intake.origin import ResourceRef
from agent.core.intake.watching import watching
from agent.core.service.services import parse_services

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
    assert watching(SERVICES)(place) == found
