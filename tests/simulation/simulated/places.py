"""What a simulation starts from: services, their recorded events, and the arithmetic, read once per process."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from agent.adapters.platform.rehearsal.scenario import load_scenario
from agent.app.catalogues import read_capacity, read_policy, read_rules
from agent.core.decision.policy import Policy
from agent.core.decision.rule import KINDS, Approver, Mode, Rule
from agent.core.incident.times import Times
from agent.core.service.services import Services, parse_services
from agent.core.service.serving import ServingConfig
from agent.ports.stage_context import Rules
from agent.settings import read_settings

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = read_settings({}, platform="none", store="sqlite:nowhere")
APPROVERS = 3
FOLDERS = {
    "probe": "gemma4-26b-l4-startup-probe",
    "context": "gemma4-26b-l4-context-refused",
    "oom": "gemma4-31b-l4-oom",
}


class Remembered:
    """The arithmetic is pure, so an answer once given is given again."""

    def __init__(self, fits: Any) -> None:
        self._fits = fits
        self._answers: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._fits, name)

        def answer(*args: Any, **more: Any) -> Any:
            key = (name, args, *sorted(more.items()))
            if key not in self._answers:
                self._answers[key] = asked(*args, **more)
            return self._answers[key]

        return answer


@cache
def watched() -> Services:
    """The services of two examples under one roof."""
    texts = [(ROOT / "examples" / FOLDERS[name] / "services.toml").read_text() for name in ("probe", "oom")]
    return parse_services("\n".join(texts))


@cache
def known(times: Times, *, voters: int = 1) -> Rules:
    """What every process of a simulation knows; ``voters`` is how many people must approve a change."""
    return read_rules(watched(), policy(voters), times, capacity=fits())


def policy(voters: int) -> Policy:
    """The policy of an installation, with approvers where several must approve."""
    services = tuple(service.name for service in watched().services)
    found = read_policy(SETTINGS).with_(lifecycle=services, accelerators=("nvidia-l4",))
    if voters < 2:
        return found
    rule = Rule(services=services, kinds=tuple(sorted(KINDS)), mode=Mode.PERSON, approvals=voters)
    people = tuple(Approver(name=f"Person {n}", slack=slack_id(n), services=services) for n in range(APPROVERS))
    return found.with_(rules=(rule,), approvers=people)


def slack_id(number: int) -> str:
    """The identity under which an approver presses."""
    return f"U000{number}"


@cache
def fits() -> Remembered:
    return Remembered(read_capacity(watched(), SETTINGS))


@cache
def opening(story: str) -> tuple[str, str, ServingConfig, bool | None]:
    """Return service, revision in trouble, configuration, and whether it serves."""
    scenario = load_scenario(ROOT / "examples" / FOLDERS[story] / "scenario.toml")
    return scenario.service, scenario.live.revision, scenario.live.config, scenario.live.ready


@cache
def events(story: str) -> tuple[dict[str, Any], ...]:
    """Return the recorded log entries."""
    lines = (ROOT / "examples" / FOLDERS[story] / "events.jsonl").read_text().splitlines()
    return tuple(json.loads(line) for line in lines if line.strip())


def stamped(event: dict[str, Any], at: str, number: int, revision: str | None = None) -> dict[str, Any]:
    """Return a log entry as if it had been written at another time, perhaps by another revision."""
    labels = dict(event["resource"]["labels"])
    if revision is not None:
        labels["revision_name"] = revision
    return {
        **event,
        "insertId": f"sim{number:021x}",
        "timestamp": at,
        "receiveTimestamp": at,
        "resource": {**event["resource"], "labels": labels},
    }
