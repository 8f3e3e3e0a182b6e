"""Names that tell whose it was are replaced alike in all files, and what is left is found again."""

import pytest

from tools.stand_in_names import StandInNames


@pytest.fixture
def names():
    return StandInNames(
        projects=["acme-prod", "acme-models-prod"],
        numbers=["987654321098"],
        accounts=["Ana@acme.io"],
        buckets=["acme-weights"],
        people=["Ana Ruiz"],
    )


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("projects/acme-prod/logs/x, acme-prod-state", "projects/example-project/logs/x, example-project-state"),
        ("projects/acme-models-prod/x", "projects/example-project-2/x"),
        ("projects/987654321098/x projects/of-a-stranger/x", "projects/000000000000/x projects/example-project-3/x"),
        ("by ana@acme.io", "by account-1"),
        ("run@acme-prod.iam.gserviceaccount.com", "account-2"),
        ("bob@acme.io, eve@acme.io, bob@acme.io", "person-2, person-3, person-2"),
        ("https://g-987654321098.us-east4.run.app/v1", "https://g-000000000000.us-east4.run.app/v1"),
        ("https://g-abcdefghij-uc.a.run.app", "https://host-1.example.com"),
        ("http://u:p@db.acme.io:80/ vllm.llm.svc.cluster.local", "http://host-1.example.com:80/ host-2.example.com"),
        ("10.1.2.3, 192.168.0.7, 10.1.2.3", "192.0.2.1, 192.0.2.2, 192.0.2.1"),
        ("2600:1f18::1", "2001:db8::1"),
        ("us-docker.pkg.dev/of-a-stranger/r/i", "us-docker.pkg.dev/example-project-3/r/i"),
        ("gs://acme-weights/x gs://others/x acme-weights", "gs://example-bucket-1/x gs://example-bucket-2/x example-bucket-1"),
        ("approved by Ana Ruiz", "approved by person-1"),
    ],
)  # fmt: skip
def test_a_name_is_found_replaced_and_then_gone(names, told, shown):
    assert list(names.left(told))
    assert names.replaced(told) == shown
    assert list(names.left(shown)) == []
    assert names.replaced(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "INFO 06-10 09:20:09 [utils.py:306] vLLM API server version 0.22.1",
        "listening on http://0.0.0.0:8080, probe of http://127.0.0.1:8080/health, [::1]:8080",
        "see https://docs.vllm.ai/en/latest/ and c10::Error in std::vector, torch.OutOfMemoryError",
        "vllm/vllm-openai@sha256:0123 type.googleapis.com/google.cloud.audit.AuditLog",
    ],
)
def test_what_tells_nothing_stays(names, text):
    assert names.replaced(text) == text
    assert list(names.left(text)) == []


def test_texts_are_replaced_wherever_they_stand(names):
    value = {"acme-prod": ["10.1.2.3", {"n": 1}], "n": None}
    assert names.replaced(value) == {"example-project": ["192.0.2.1", {"n": 1}], "n": None}


def test_the_second_look_sees_what_a_url_has_encoded_and_never_repeats_it(names):
    """It names line and kind; whoever reads the message learns nothing."""
    found = list(names.left("fine\nby bob%40acme.io"))
    assert found == [(2, "e-mail address")]
