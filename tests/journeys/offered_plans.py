"""T5: for how many recorded failures a change is offered for approval; `python tests/journeys/offered_plans.py`.

Each failure of the corpora becomes a service that an adapter can change: the row's model, accelerator and flags, and
what its own log tells of them. The rules diagnose it and a plan is made, as the service would do it.
"""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from agent.app.catalogues import matcher, read_capacity, titles
from agent.catalogue.load_bundled import load_default_policy
from agent.core.diagnosis.diagnosing import LogText, diagnose
from agent.core.incident.incident import Incident
from agent.core.plan.plan import Rollout
from agent.core.plan.printed_memory import printed
from agent.core.planning.planning import Proposal, propose
from agent.core.service.logged_config import args_from_log
from agent.core.service.services import parse_services
from agent.core.service.serving import Live, Probe, ServingConfig

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
CORPORA = ("incidents-dev.jsonl", "incidents-dev-2.jsonl")
NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
CONTAINERS = frozenset({"cloud_run", "kubernetes", "container_apps"})
_COUNT = re.compile(r"^(\d+) ?x? ")
_NAMED = re.compile(r"(max_model_len|gpu_memory_utilization|max_num_seqs)[ =]([\d.]+)")


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """One recorded failure, and what is proposed for it; None where nothing is."""

    id: str
    class_: str
    proposal: Proposal | None

    @property
    def offered(self) -> bool:
        """Whether a change of ours is offered for approval, and not only a task for a person."""
        return self.proposal is not None and self.proposal.rollout is not Rollout.BY_PERSON

    def to_json(self) -> dict[str, Any]:
        """One line of the report."""
        found = self.proposal
        actions = [a.model_dump(mode="json", exclude_none=True) for a in found.actions] if found else []
        for action in actions:
            action.pop("instruction", None), action.pop("commands", None), action.pop("undo", None)
        return {
            "id": self.id,
            "class": self.class_,
            "offered": self.offered,
            "proof": str(getattr(found, "proof", "")) or None,
            "fits": found.fit_after.fits if found else None,
            "sentence": found.fit_after.sentence if found else "",
            "actions": actions,
        }


def replayed(turns: int = 1) -> Iterator[Replayed]:
    """Replay every failure of both corpora, in order, or one of so many; what is labelled benign is none."""
    lines = (line for name in CORPORA for line in (SHARED / name).read_text(encoding="utf-8").splitlines())
    failures = (row for row in map(json.loads, lines) if row["class"] != "benign")
    yield from map(replay, islice(failures, 0, None, turns))


def replay(row: dict[str, Any]) -> Replayed:
    """Diagnose one row and propose."""
    lines = tuple(row["log"].splitlines())
    log = LogText(lines=tuple((NOW, line) for line in lines), complete=True)
    platform = row["platform"]
    diagnosis = diagnose((), log, platform=platform, matcher=matcher(), titles=titles(), now=NOW)
    told = args_from_log(lines)
    count, accelerator = _accelerator(row.get("accelerator"))
    config = ServingConfig(
        command=("vllm",),
        args=told.args if told is not None else ("serve", _slug_model(row), *_flags(row.get("flags") or "")),
        cpu=4 if platform in CONTAINERS else None,
        memory_mib=16_384 if platform in CONTAINERS else None,
        accelerator=accelerator,
        accelerator_count=count,
        max_instances=1,
        concurrency=4 if platform == "cloud_run" else None,
        startup_probe=Probe() if platform in CONTAINERS else None,
        liveness_probe=Probe() if platform in CONTAINERS else None,
    )
    service: dict[str, Any] = {
        "name": "replayed", "platform": platform, "model": _slug_model(row), "accelerator": accelerator,
        "accelerator_count": count, "owner": "console", "project": "p", "location": "europe-west4",
    }  # fmt: skip
    version = row.get("vllm_version") or ""
    if re.fullmatch(r"v?\d+\.\d+(\.\d+)?\S*", version):
        service["vllm"] = version
    fits = read_capacity(parse_services({"service": [service]}))
    live = Live(
        service="replayed", platform=platform, config=config, uid="u", generation=1, etag="e", template="{}",
        ready=False, latest_created_revision="r-1",
    )  # fmt: skip
    incident = Incident(
        id="inc-1", service="replayed", platform=platform, opened_at=NOW, phase_at=NOW, quiet_since=NOW,
        diagnosis=diagnosis, logged_config=told, printed=printed(lines, revision="r-1"),
    )  # fmt: skip
    return Replayed(
        id=row["id"], class_=diagnosis.class_, proposal=propose(incident, live, fits, load_default_policy())
    )


def _slug_model(row: dict[str, Any]) -> str:
    model = (row.get("model") or "unknown").split(" ")[0]
    return f"google/{model}" if model.startswith("gemma-4") else model


def _accelerator(said: str | None) -> tuple[int, str]:
    """Return how many, and the name as a person would write it in services.toml."""
    text = (said or "unknown").lower().split(",")[0].split("(")[0]
    found = _COUNT.match(text)
    text = re.sub(r"[^a-z0-9]+", "-", text[found.end() :] if found else text).strip("-")
    return int(found[1]) if found else 1, text or "unknown"


def _flags(said: object) -> tuple[str, ...]:
    """Return what of the row's remark can be read as flags."""
    if isinstance(said, dict):
        return tuple(word for name, value in said.items() for word in (f"--{name.replace('_', '-')}", str(value)))
    text = str(said)
    if "--" in text:
        try:
            return tuple(shlex.split(text[text.index("--") :]))
        except ValueError:
            return ()
    return tuple(word for name, value in _NAMED.findall(text) for word in (f"--{name.replace('_', '-')}", value))


def main() -> None:
    """Print one JSON line for each failure, then the count."""
    found = list(replayed())
    for each in found:
        print(json.dumps(each.to_json()))
    print(json.dumps({"failures": len(found), "offered": sum(each.offered for each in found)}))


if __name__ == "__main__":
    main()
