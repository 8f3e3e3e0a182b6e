"""An incident of a live account as a folder in the form of examples/: without secrets and without whose it was."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.adapters.platform.rehearsal.scenario import facts
from agent.app.redaction import hide, redact, redactor
from agent.core.change.verification import Check
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import Phase
from agent.core.service.services import Service
from agent.core.service.serving import Live, ServingConfig
from agent.errors import DependencyFailed, InputRejected
from tools.stand_in_names import StandInNames

_KEPT = frozenset({"name", "platform", "project", "location", "model", "checkpoint", "mounts", "accelerator",
                   "accelerator_count", "vllm", "needs"})  # fmt: skip
_NOT_KEPT: dict[str, Any] = {
    "decision": {"receipt", "votes"},
    "execution": {"prior_template", "prior_traffic"},
    "approvals": True,
    "roll_back": True,
    "traceparent": True,
}
_VLLM = re.compile(r"(?:vLLM API server version|LLM engine \(v?)\s*v?(\d+\.\d+[\w.+]*)")
_DIGEST = re.compile(r"@(sha256:[0-9a-f]{64})")


@dataclass(frozen=True, kw_only=True)
class LiveRecord:
    """What was read of one incident of a live account, as it was read.

    Attributes:
        before: The service when its incident was first seen.
        after: The service at the end; None where it could not be read.
        events: Log entries that a sink let through, in the API's form, oldest first.
        lines: Log entries of the instance itself, oldest first.
        late: Whether the agent had begun to change the service when ``before`` was read.
        agent: The agent's version.
        taken_at: When the record was made, UTC.
    """

    service: Service
    incident: Incident
    timeline: tuple[Event, ...]
    before: Live
    after: Live | None
    events: tuple[Mapping[str, Any], ...]
    lines: tuple[Mapping[str, Any], ...]
    late: bool
    agent: str
    taken_at: datetime

    @property
    def people(self) -> tuple[str, ...]:
        """What the channels call the people of this incident."""
        incident = self.incident
        said = [event.by for event in self.timeline] + [incident.assignee]
        if incident.decision is not None:
            said += [incident.decision.who, incident.decision.name]
        for act in (incident.acknowledged, incident.task_done, incident.replan, incident.replanned, incident.closed):
            if act is not None:
                said.append(act.who)
        return tuple(dict.fromkeys(name for name in said if len(name) > 1 and name not in {"agent", "policy"}))

    @property
    def buckets(self) -> tuple[str, ...]:
        """The buckets that the service mounts."""
        mounted = [uri.removeprefix("gs://").partition("/")[0] for uri in self.service.mounts.values()]
        lives = [self.before] if self.after is None else [self.before, self.after]
        mounted += [volume.bucket for live in lives for volume in live.config.volumes if volume.bucket]
        return tuple(dict.fromkeys(mounted))

    @property
    def vllm(self) -> str:
        """The version that the server printed, or that its owner named."""
        printed = (_VLLM.search(_said(line)) for line in self.lines)
        return next((f[1] for f in printed if f), None) or self.service.vllm or "not known"

    @property
    def image(self) -> str:
        """The digest of the served image, where its configuration names one."""
        found = _DIGEST.search(self.before.config.image)
        return found[1] if found else "not known: the configuration names a tag, no digest"


def write_record(record: LiveRecord, folder: Path, names: StandInNames) -> tuple[str, ...]:
    """Write the folder, whole or not at all, and return the names of its files.

    Raises:
        InputRejected: The folder is there already, or nothing was logged that could be replayed.
        DependencyFailed: Something that tells whose it was is left after all, or the folder cannot be written.
    """
    if folder.exists():
        raise InputRejected(f"{str(folder)!r} was not written", why="it is there already", hint="name another folder")
    if not record.events:
        raise InputRejected(
            f"{str(folder)!r} was not written",
            why="Cloud Logging gave no event of this incident, so there is nothing to replay",
            hint="wait a minute, look at the log of the service, and check your right to read it",
        )
    files = record_files(record, names)
    _second_look(files, names)
    beside = folder.with_name(f".{folder.name}.part")
    try:
        beside.mkdir(parents=True)
        for name, text in files.items():
            (beside / name).write_text(text, encoding="utf-8")
        beside.rename(folder)
    except OSError as error:
        raise DependencyFailed(
            f"{str(folder)!r} was not written",
            why=(error.strerror or str(error)).lower(),
            hint=f"name a folder that you may write to, and take {str(beside)!r} away if it is there",
        ) from error
    return tuple(files)


def record_files(record: LiveRecord, names: StandInNames) -> dict[str, str]:
    """Return the text of each file of the folder."""
    events = [json.loads(hide(json.dumps(dict(entry)))) for entry in record.events]
    recorded = json.loads(hide(record.incident.model_dump_json(exclude=_NOT_KEPT)))
    timeline = json.loads(hide(json.dumps([event.model_dump(mode="json") for event in record.timeline])))
    log = [f"{entry['timestamp']} {line}" for entry in record.lines for line in _said(entry).splitlines() or [""]]
    clean = names.replaced(list(redactor().redact_lines(log).lines))
    files = {
        "events.jsonl": _lines(json.dumps(names.replaced(entry), ensure_ascii=False) for entry in events),
        "instance.log": _lines(clean),
        "incident.json": json.dumps(names.replaced({"incident": recorded, "timeline": timeline}), indent=2) + "\n",
        "services.toml": _services(record, names),
        "scenario.toml": _scenario(record, names),
        "PROVENANCE.md": names.replaced(_provenance(record)),
    }
    return {name: text for name, text in files.items() if text}


def _second_look(files: Mapping[str, str], names: StandInNames) -> None:
    left = [f"{kind} ({name}, line {n})" for name, text in files.items() for n, kind in names.left(text)]
    left += [f"a secret ({name})" for name, text in files.items() if _clean(name, text) != text]
    if left:
        raise DependencyFailed(
            "the record was not written",
            why=f"a second look still finds {', '.join(left[:5])}{' and more' if len(left) > 5 else ''}",
            hint="nothing was kept; report this, it is a mistake of the tool",
        )


def _clean(name: str, text: str) -> str:
    """Take the secrets out of a file, by its form: a value of JSON is no assignment to its key."""
    if name.endswith(".jsonl"):
        return _lines(map(hide, text.splitlines()))
    return hide(text) if name.endswith(".json") else redact(text)


def instance_of(entry: Mapping[str, Any]) -> str | None:
    """Return the instance that a log entry names."""
    labels = entry.get("labels")
    return labels.get("instanceId") if isinstance(labels, Mapping) else None


def _said(entry: Mapping[str, Any]) -> str:
    payload = entry.get("jsonPayload")
    return str(entry.get("textPayload") or (payload.get("message") if isinstance(payload, Mapping) else "") or "")


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _services(record: LiveRecord, names: StandInNames) -> str:
    kept = record.service.model_dump(mode="json", exclude_none=True, exclude_defaults=True, include=set(_KEPT))
    needs = kept.pop("needs", {})
    rows = names.replaced({**kept, "owner": "console", "scenario": "scenario.toml"})
    text = "# What is watched in this record; whose it was is replaced.\n[[service]]\n" + _lines(_pairs(rows))
    return text + ("\n[service.needs]\n" + _lines(_pairs(needs)) if needs else "")


def _scenario(record: LiveRecord, names: StandInNames) -> str:
    service, live = record.service, record.before
    head = {
        "service": service.name,
        "platform": service.platform,
        "title": f"A smoke incident of a live account: {record.incident.cause}",
        "source": "recorded by deploy.sh smoke --record; see PROVENANCE.md",
        "needs_tokens_per_s": service.needs.tokens_per_s,
        "free": ["min_instances", "max_instances", "concurrency", "request_timeout_s", "env SRE_AGENT_*"],
    }
    start = {
        "revision": record.incident.revision or live.latest_created_revision or "",
        "generation": max(live.generation, 1),
        "ready": live.ready,
        "message": redact(live.message),
        "latest_ready_revision": live.latest_ready_revision,
        "spare_accelerator": live.spare_accelerator,
        "instance": next((i for entry in record.lines if (i := instance_of(entry))), None),
        "recording": _recording(record),
        "config": _config(live.config),
    }
    if live.ready is None:  # it was still starting; the record's own end of it is the failure that was seen
        start["ready"] = False
    text = _lines(_pairs(names.replaced(head))) + "\n[live]\n" + _lines(_pairs(names.replaced(start)))
    for outcome in _outcomes(record):
        text += "\n[[outcome]]\n" + _lines(_pairs(names.replaced(outcome)))
    return text


def _recording(record: LiveRecord) -> dict[str, Any]:
    first = (record.lines or record.events)[0]
    return {
        "log": "instance.log" if record.lines else None,
        "events": "events.jsonl",
        "revision": record.incident.revision or "",
        "began_at": first["timestamp"],
    }


def _config(config: ServingConfig) -> dict[str, Any]:
    """Return the configuration; a value of the environment that looks like a secret beside its name is taken out."""
    env = [
        e if e.value is None or redact(f"{e.name}={e.value}") == f"{e.name}={e.value}" else e.with_(value="redacted")
        for e in config.env
    ]
    args, command = (tuple(map(redact, words)) for words in (config.args, config.command))
    clean = config.with_(env=tuple(env), args=args, command=command)
    found: dict[str, Any] = clean.model_dump(mode="json", exclude_none=True)
    return found


def _outcomes(record: LiveRecord) -> Iterator[dict[str, Any]]:
    """Yield the start that failed, and the one that the incident ended with where it was measured."""
    incident = record.incident
    if record.before.ready is not True:
        yield {
            "name": "as it failed",
            "result": "failed",
            "after_s": _span(datetime.fromisoformat(str(record.events[-1]["timestamp"])), _began(record)),
            "message": redact(record.before.message) or "the newest revision did not become ready",
            "source": "recorded in this incident",
        }
    verification = incident.verification
    if incident.phase is not Phase.RESOLVED or record.after is None or verification is None:
        return
    yield {
        "name": "as it was mended",
        "result": "came_up",
        "after_s": _span(verification.ready_at or verification.until, changed_at(incident) or verification.since),
        "source": "recorded in this incident: the change that was approved",
        "when": _changed(record.before.config, record.after.config),
        "measured": [
            {"check": m.check.value, "good": m.good, "value": m.value, "first_token_s": m.first_token_s, "says": m.says}
            for check in (Check.COMPLETION, Check.TOKENS, Check.SPEED)
            if (m := verification.latest(check)) is not None and m.real
        ],
    }  # fmt: skip


def changed_at(incident: Incident) -> datetime | None:
    """Return when the service was changed for it; None where it was not."""
    return incident.execution.effects[0].intended_at if incident.execution and incident.execution.effects else None


def _began(record: LiveRecord) -> datetime:
    return datetime.fromisoformat(str((record.lines or record.events)[0]["timestamp"]))


def _span(until: datetime, since: datetime) -> float:
    return max(round((until - since).total_seconds(), 1), 0.0)


def _changed(before: ServingConfig, after: ServingConfig) -> dict[str, str]:
    one, other = facts(before), facts(after)
    keys = [key for key in dict.fromkeys([*one, *other]) if one.get(key) != other.get(key)]
    recorded = (key for key in keys if not key.startswith("env SRE_AGENT_"))
    return {key: f"= {redact(other[key])}" if key in other else "absent" for key in recorded}


def _provenance(record: LiveRecord) -> str:
    incident = record.incident
    ended = f"{incident.phase.value}{f': {redact(incident.ended_why)}' if incident.ended_why else ''}"
    if not incident.ended:
        ended = f"NOT ENDED when the record was made: it stood at {incident.phase.value}"
    configuration = "as the platform described it when the incident was first seen"
    if record.late:
        configuration += "; a change of the agent was under way by then"
    log = f"{len(record.lines)} entries" if record.lines else "none could be read"
    rows = {
        "made at": record.taken_at.strftime("%Y-%m-%d %H:%M UTC"),
        "agent": record.agent,
        "vLLM": record.vllm,
        "platform, region": f"{record.service.platform}, {record.service.location or 'not known'}",
        "image digest": record.image,
        "end of the incident": ended,
        "events.jsonl": f"{len(record.events)} log entries that the sink lets through, word for word but for names",
        "instance.log": f"the instance's own log, {log}",
        "scenario.toml": f"recorded: {configuration}; what came of the change, as it was measured",
        "incident.json": "the incident and its timeline as the agent stored them, without signatures and templates",
        "replaced": "project, its number, accounts, e-mail addresses, people, buckets, hosts, IP addresses; secrets",
    }
    text = "# Where this comes from\nOne smoke incident of a live account, recorded by `./deploy.sh smoke --record`. "
    text += "The agent's diagnosis proves nothing\nby itself: to make a test of this folder, write `expected.json` by "
    text += "what really was wrong.\n\n| what | how we know it |\n|---|---|\n"
    return text + _lines(f"| {key} | {_cell(value)} |" for key, value in rows.items())


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


def _pairs(table: Mapping[str, Any]) -> Iterator[str]:
    return (f"{_key(key)} = {_toml(value)}" for key, value in table.items() if value is not None)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key)


def _toml(value: Any) -> str:
    """A value as TOML; texts and numbers of JSON are read alike."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(_pairs(value))} }}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
