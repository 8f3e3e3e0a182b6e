"""A log entry's words, names and key, in every payload that an entry can have."""

import pytest

from agent.core.intake.log_entry import read_log_entry
from agent.core.intake.origin import IgnoredBecause, Reading
from agent.core.intake.signal import TEXT_LIMIT, Source
from agent.errors import InputRejected


def one(entry, **reading):
    (found,) = read_log_entry(entry, Reading(**reading))
    return found


def test_two_exports_of_one_entry_have_one_key(sample):
    """Digits of the second, the order of keys and the time of receipt do not make another entry."""
    entry = sample("log_container_exit")
    other = dict(reversed(entry.items())) | {
        "timestamp": "2025-09-16T00:42:54.053646000+00:00",
        "receiveTimestamp": "2025-09-16T01:00:00Z",
    }
    assert one(entry).key == one(other).key
    assert one(entry).key != one(entry | {"insertId": "x"}).key


def test_an_entry_without_an_insert_id_is_known_by_what_it_says(sample):
    """The same words at the same time are one entry; other words are another."""
    entry = sample("log_container_exit")
    del entry["insertId"]
    assert one(entry).key == one(entry | {"receiveTimestamp": "2025-09-16T01:00:00Z"}).key
    assert one(entry).key != one(entry | {"textPayload": "Container called exit(4)."}).key


@pytest.mark.parametrize("severity", ["DEBUG", "EMERGENCY", None])
def test_text_decides_and_severity_does_not(sample, severity):
    """The server's lines have no severity; whatever one says, the entry becomes a signal with its text."""
    entry = sample("log_vllm_no_cache_blocks") | ({"severity": severity} if severity else {})
    assert "No available memory for the cache blocks" in one(entry).text
    assert one(entry).severity == (severity or "DEFAULT")


def test_structured_logging_is_read_by_its_message_and_its_trace(sample):
    """The message comes first, the exception after it; a logger's bookkeeping is no observation."""
    entry = sample("log_vllm_ready")
    del entry["textPayload"]
    entry["jsonPayload"] = {
        "message": "worker failed",
        "levelname": "ERROR",
        "lineno": 7,
        "logger": "vllm.engine",
        "exc_info": "torch.OutOfMemoryError: CUDA out of memory.",
    }
    found = one(entry)
    assert found.text == "worker failed\ntorch.OutOfMemoryError: CUDA out of memory."
    assert found.fields["logger"] == "vllm.engine"
    assert found.source is Source.APP_LOG


def test_a_payload_without_a_message_is_read_whole(sample):
    """No word of an unknown structure is lost."""
    entry = sample("log_vllm_ready")
    del entry["textPayload"]
    entry["jsonPayload"] = {"outcome": {"detail": "Xid 79", "gpu": 3}}
    assert "Xid 79" in one(entry).text


def test_an_audit_entry_without_a_status_says_what_was_called(sample):
    """A call that went well has no message; request and response bodies stay out."""
    entry = sample("audit_activity_update_service_ok")
    entry["protoPayload"]["request"] = {"service": {"env": "SECRET"}}
    found = one(entry)
    assert found.text.startswith("google.cloud.run.v2.Services.UpdateService on projects/")
    assert "SECRET" not in found.text
    assert found.fields["principal"] == "deployer@example-project.iam.gserviceaccount.com"


def test_a_request_log_keeps_the_path_and_drops_the_query(sample):
    """A request without words says what was asked and how it ended; a key in its URL does not stay."""
    entry = sample("log_request_503_malformed")
    del entry["textPayload"]
    entry["httpRequest"]["requestUrl"] = "https://h/v1/models?key=SECRET"
    found = one(entry)
    assert found.text == "HTTP POST /v1/models status 503"
    assert "SECRET" not in str(found)


def test_a_container_of_kubernetes_is_its_workload():
    """Deployment, replica set and pod are service, revision and instance."""
    found = one(
        {
            "textPayload": "torch.OutOfMemoryError",
            "insertId": "1",
            "timestamp": "2026-11-20T10:15:32Z",
            "logName": "projects/p/logs/stderr",
            "resource": {
                "type": "k8s_container",
                "labels": {
                    "pod_name": "vllm-56494768b7-544n6",
                    "container_name": "vllm",
                    "namespace_name": "inference",
                },
            },
        }
    )
    assert (found.platform, found.service, found.revision, found.instance) == (
        "kubernetes",
        "vllm",
        "vllm-56494768b7",
        "vllm-56494768b7-544n6",
    )


def test_an_empty_line_is_ignored_not_refused(sample):
    """Servers print blank lines; they are acknowledged."""
    assert one(sample("log_vllm_ready") | {"textPayload": " \n"}).because is IgnoredBecause.EMPTY


def test_an_entry_without_a_service_takes_the_readings_or_is_refused():
    """A bare entry of a file is about the service that the replay names; without one it is refused."""
    entry = {"textPayload": "x", "timestamp": "2026-11-20T10:15:32Z"}
    assert one(entry, service="gemma").service == "gemma"
    with pytest.raises(InputRejected, match="service name is missing"):
        one(entry)


@pytest.mark.parametrize("said", [None, "soon", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-10:00", 5, {"seconds": 1}])
def test_an_entry_whose_time_is_no_time_is_refused_unless_its_arrival_is_known(sample, said):
    """A zero value or nonsense is no time; the time of receipt, then of arrival, stands in."""
    entry = sample("log_vllm_ready") | {"timestamp": said}
    assert one(entry).at.isoformat() == "2026-11-20T10:14:59.783909+00:00"
    del entry["receiveTimestamp"]
    with pytest.raises(InputRejected, match="time is missing"):
        one(entry)


def test_a_text_too_long_keeps_its_head_and_its_tail(sample):
    """An exception stands at the end of a traceback."""
    found = one(sample("log_vllm_ready") | {"textPayload": "head" + "x" * 300_000 + "ValueError: tail"})
    assert len(found.text) <= TEXT_LIMIT
    assert found.text.startswith("head")
    assert found.text.endswith("ValueError: tail")


@pytest.mark.parametrize(
    ("resource", "because"),
    [
        ({"type": "k8s_node", "labels": {"node_name": "gpu-pool-1"}}, IgnoredBecause.NOT_WATCHED),
        ({"type": "gcs_bucket", "labels": {"bucket_name": "b"}}, IgnoredBecause.NOT_WATCHED),
    ],
)
def test_another_kind_of_resource_is_not_watched_and_not_taken_for_the_only_service(resource, because):
    """A sink that lets too much through must not fill the quarantine, nor open incidents of the one service."""
    entry = {"textPayload": "NotReady", "timestamp": "2026-11-20T10:15:32Z", "resource": resource}
    found = one(entry, service="gemma", watched=lambda place: place.service if place.service == "gemma" else None)
    assert found.because is because


def test_a_global_resource_says_nothing_about_the_service():
    """What client libraries write away from the cloud belongs to the service that the reading names."""
    entry = {
        "textPayload": "x",
        "timestamp": "2026-11-20T10:15:32Z",
        "resource": {"type": "global", "labels": {"project_id": "p"}},
    }
    assert one(entry, service="gemma").service == "gemma"
