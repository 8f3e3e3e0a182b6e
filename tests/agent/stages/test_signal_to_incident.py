"""A storm costs rows, not versions of the incident, whether or not a rule knows its line."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.app import App, build_app_in_memory
from agent.core.decision.decision import Channel, PersonAct
from agent.core.incident.correlation import accepts
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.intake.signal import Signal, Source
from agent.entrypoints.cli.analysis import SteppedClock
from agent.entrypoints.service import entry_message, handlers
from agent.ports.store import Query
from agent.settings import read_settings

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"
T0 = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
STORM = 300


@pytest.fixture
def heard(tmp_path: Path) -> Callable[[list[dict[str, Any]]], App]:
    """Publish log entries, each handled before the next one comes."""

    def hear(entries: list[dict[str, Any]]) -> App:
        settings = read_settings({}, platform=f"rehearsal:{EXAMPLE}")
        service = build_app_in_memory(settings, clock=SteppedClock(T0), state=tmp_path)
        work = service.worker(handlers(service), threads=1).run_due
        for entry in entries:
            service.bus.publish(entry_message(entry))
            work()
        return service

    return hear


def entries(text: Callable[[int], str]) -> list[dict[str, Any]]:
    """Loud lines of the platform about one revision."""
    first = json.loads((EXAMPLE / "events.jsonl").read_text().splitlines()[0])
    return [
        {
            **first,
            "insertId": f"{n:020x}",
            "timestamp": (T0 + timedelta(milliseconds=n)).isoformat().replace("+00:00", "Z"),
            "severity": "ERROR",
            "textPayload": text(n),
        }
        for n in range(STORM)
    ]


RECORDED = json.loads((EXAMPLE / "events.jsonl").read_text().splitlines()[0])["textPayload"]


@pytest.mark.parametrize(
    "text",
    [
        lambda _: RECORDED,
        lambda _: 'STARTUP HTTP probe failed 10 times consecutively for container "vllm-openai-1" on port 8000.',
        lambda _: "the flux capacitor was not recognised",
    ],
    ids=["the recorded line", "a known line", "a line that no rule knows"],
)
def test_equal_lines_write_the_incident_at_powers_of_two_only(heard, text) -> None:
    (incident,) = heard(entries(text)).store.incidents(Query())
    assert incident.signal_count == 256
    assert incident.version <= 24


@pytest.mark.parametrize("text", [RECORDED, "the flux capacitor was not recognised", "a line\nthat goes on"])
def test_an_incident_names_every_revision_that_it_has_a_signal_of(heard, text) -> None:
    """A verdict relies on it: signals are read only where one of the new revision is named."""
    sent = entries(lambda _: text)[:4]
    labels = sent[0]["resource"]["labels"]
    for number, entry in enumerate(sent):
        entry["resource"] = entry["resource"] | {
            "labels": labels | {"revision_name": f"{labels['revision_name']}{number % 2}"}
        }
    store = heard(sent).store
    for incident in store.incidents(Query()):
        assert {s.revision for s in store.signals(incident.id)} == {c.revision for c in incident.correlated}


@pytest.mark.slow
def test_unknown_lines_that_all_differ_write_it_no_more_often_than_it_names_lines(heard) -> None:
    """Somebody complains in ever new words: so many are named, the rest is counted."""
    service = heard(entries(lambda n: f"the flux capacitor number {n} was not recognised"))
    (incident,) = service.store.incidents(Query())
    assert len(service.store.signals(incident.id)) == STORM
    assert incident.version <= 3 * 64 + 24


def test_no_secret_is_kept_of_a_signal_neither_in_its_text_nor_beside_it(heard) -> None:
    """Alerts bring prose in their fields too: a policy's name, its documentation."""
    secret = "h" + "f_" + "Zq3Xv9Kd7Rm2Wp8Ht5Lc4Nb6Jy1Gf0TsZq"
    sample = ROOT / "tests" / "data" / "samples" / "monitoring_alert_v1_2_open_cloud_run.json"
    alert = json.loads(sample.read_text())
    alert["incident"]["policy_name"] += f" {secret}"
    alert["incident"]["summary"] += f" {secret}"
    watched = json.loads((EXAMPLE / "events.jsonl").read_text().splitlines()[0])["resource"]["labels"]
    alert["incident"]["resource"]["labels"] |= watched
    alert["incident"]["scoping_project_id"] = watched["project_id"]
    store = heard([alert]).store
    (incident,) = store.incidents(Query())
    (signal,) = store.signals(incident.id)
    assert secret not in signal.model_dump_json()
    assert secret not in incident.model_dump_json()
    assert "[redacted:huggingface-token]" in signal.text
    assert "[redacted:huggingface-token]" in signal.fields["policy"]


@pytest.mark.parametrize(("since", "opened"), [("10:05:33", 0), ("10:05:32", 1)], ids=["a start", "ten minutes"])
def test_a_port_that_is_closed_while_a_server_starts_wakes_nobody(heard, since, opened) -> None:
    """The kubelet warns at each try, in every start of every server; after ten minutes somebody wants to know."""
    sample = (ROOT / "tests" / "data" / "samples" / "gke_event_unhealthy.json").read_text()
    entry = json.loads(sample.replace("vllm-gemma4-", "gemma4-26b-qat-l4-"))
    watched = json.loads((EXAMPLE / "events.jsonl").read_text().splitlines()[0])["resource"]["labels"]
    entry["resource"]["labels"] |= {key: watched[key] for key in ("project_id", "location")}
    entry["jsonPayload"]["firstTimestamp"] = f"2026-11-20T{since}Z"
    assert len(heard([entry]).store.incidents(Query())) == opened


COOL_OFF_S = 86_400
ESCALATED = Incident(
    id="inc-a", service="svc", platform="fake", revision="svc-1", opened_at=T0, phase_at=T0, quiet_since=T0,
    phase=Phase.ESCALATED,
)  # fmt: skip
REPLAN = PersonAct(who="ana", verified=False, channel=Channel.CONSOLE, at=T0 + timedelta(days=3))


@pytest.mark.parametrize(
    ("revision", "hours", "taken"),
    [("svc-1", 1, True), ("svc-1", 25, False), ("svc-2", 1, False), (None, 1, True)],
    ids=["within the cool-off", "after it", "of another revision", "of no revision"],
)
@pytest.mark.parametrize("replan", [None, REPLAN], ids=["escalated", "another plan is asked for"])
def test_what_a_person_asks_of_an_escalated_incident_does_not_open_it_to_every_signal(
    replan, revision, hours, taken
) -> None:
    """Another plan is not made yet: until then the incident takes what it took before."""
    signal = Signal(
        key="k", source=Source.ALERT, service="svc", platform="fake", revision=revision,
        at=T0 + timedelta(hours=hours), text="down",
    )  # fmt: skip
    assert accepts(ESCALATED.with_(replan=replan), signal, cool_off_s=COOL_OFF_S) is taken
