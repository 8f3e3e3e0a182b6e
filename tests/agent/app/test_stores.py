"""S11, the sink "database": no file of the embedded service ever holds a secret that came in, not even while it waits."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.app import build_app
from agent.entrypoints.service import entry_message, handlers
from agent.ports.bus import Message, Topic
from agent.ports.store import Query
from agent.settings import read_settings

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"
LETTERS = "Zq3Xv9Kd7Rm2Wp8Ht5Lc4Nb6Jy1Gf0Ts"
CANARIES = {
    "hub": "h" + "f_" + LETTERS[:34],
    "google": "AI" + "za" + "Sy" + LETTERS + "A",
    "address": LETTERS[:14],
    "named": "Tr0ub4dor-and-3-more",
}


def entry(number: int, **said: object) -> dict[str, object]:
    first = json.loads((EXAMPLE / "events.jsonl").read_text().splitlines()[0])
    at = datetime(2026, 11, 21, 3, 0, tzinfo=UTC) + timedelta(seconds=number)
    del first["textPayload"]
    return first | {"insertId": f"canary{number:014x}", "timestamp": at.isoformat().replace("+00:00", "Z")} | said


def bodies() -> list[dict[str, object]]:
    hub, google, address, named = CANARIES.values()
    alert = json.loads((ROOT / "tests" / "data" / "samples" / "monitoring_alert_v1_2_open_cloud_run.json").read_text())
    labels = entry(0)["resource"]["labels"]
    alert["incident"]["policy_name"] += f" {google}"
    alert["incident"]["summary"] += f" https://bot:{address}@host.example/x"
    alert["incident"]["resource"]["labels"] |= labels
    alert["incident"]["scoping_project_id"] = labels["project_id"]
    return [
        entry(1, textPayload=f"STARTUP HTTP probe failed: token {hub} and password={named}"),
        entry(2, jsonPayload={"message": f"key {google}", "password": named, "nested": [{"secret": named}]}),
        entry(
            3, protoPayload={"status": {"message": "no"}, "request": {"env": [{"name": "PASSWORD", "value": named}]}}
        ),
        entry(4, httpRequest={"requestUrl": f"https://u:{address}@h.example/?key={google}", "status": 500}),
        alert,
    ]


def found(folder: Path) -> list[str]:
    """Which canaries stand in which files."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "sre.sqlite" for path in files)
    return [f"{name} in {p.name}" for p in files for name, one in CANARIES.items() if one.encode() in p.read_bytes()]


@pytest.fixture
def service(tmp_path: Path):
    return build_app(read_settings({}, platform=f"rehearsal:{EXAMPLE}", store=f"sqlite:{tmp_path}"))


def test_no_file_holds_a_secret_while_it_waits_nor_after_it_was_handled(service, tmp_path: Path) -> None:
    for body in bodies():
        assert any(one in json.dumps(body) for one in CANARIES.values())
        service.bus.publish(entry_message(body))
    assert service.bus.waiting()["sre-log-events-sub"] == len(bodies())
    assert found(tmp_path) == []
    service.worker(handlers(service), threads=1).run_due()
    assert service.bus.waiting()["sre-log-events-sub"] == 0
    assert service.store.incidents(Query())
    assert found(tmp_path) == []


def test_the_same_body_is_still_noticed_when_it_is_published_again(service) -> None:
    """Its id is the publisher's, over what came: two that differ in a secret alone are two."""
    one, other = (entry(1, textPayload=f"password={p}") for p in ("first-secret-1", "other-secret-2"))
    for body in (one, one, other):
        service.bus.publish(entry_message(body))
    assert service.bus.waiting()["sre-log-events-sub"] == 2


def test_a_body_that_is_no_json_is_kept_without_its_secrets_too(service, tmp_path: Path) -> None:
    for topic in (Topic.LOG_EVENTS, Topic.ALERTS):
        service.bus.publish(Message(id=f"odd-{topic}", topic=topic, data=f"no JSON, password={CANARIES['named']}"))
    assert found(tmp_path) == []
    service.worker(handlers(service), threads=1).run_due()
    assert len(service.quarantine.rows()) == 2
    assert found(tmp_path) == []
