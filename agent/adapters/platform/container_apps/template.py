"""A container app's template as canonical JSON and back; our stamp on it, and the traffic beside it."""

import copy
import json
from collections.abc import Mapping
from typing import Any

from agent.adapters.platform.container_apps.app_ref import AppRef, Json, Seen
from agent.adapters.platform.traffic import LATEST
from agent.core.service.serving import EFFECT_LABEL, STAMP_LABELS, Traffic
from agent.core.value import canonical, digest
from agent.errors import InputRejected

INCIDENT_LABEL = next(label for label in STAMP_LABELS if label != EFFECT_LABEL)
REVISION_TAG = "sre-agent-revision"
STOP_TAG = "sre-agent-stop"
"""Names the revision of ours after which the app is to be stopped, as ``REVISION_TAG`` alone names the one after which
it is to be started; ARM does neither in the call that makes a revision."""
TAGS = frozenset({*STAMP_LABELS, REVISION_TAG, STOP_TAG})
"""Tags of the app that are ours; the stamp of a stop, which makes no revision, is three of them."""

EFFECT_ENV, INCIDENT_ENV = "SRE_AGENT_EFFECT", "SRE_AGENT_INCIDENT"
STAMP_ENV = frozenset({EFFECT_ENV, INCIDENT_ENV})
"""The stamp of a revision, which has no labels of its own: variables of the containers' environment."""


def text_of(seen: Seen) -> str:
    """Return all that an undo puts back: template, workload profile, and whether the app is stopped."""
    profile = seen.properties.get("workloadProfileName")
    parts = {"template": seen.template, "workloadProfileName": profile, "stopped": seen.is_stopped}
    return canonical(without_nulls(parts)).decode()


def parsed(text: str) -> Json:
    """Read what ``text_of`` made.

    Raises:
        InputRejected: It is none.
    """
    try:
        found = json.loads(text)  # not strict: a template that we stored
        if isinstance(found["template"], dict) and isinstance(found["stopped"], bool):
            return dict(found)
        why = "it holds no template"
    except (ValueError, TypeError, KeyError) as error:
        why = str(error)[:300]
    raise InputRejected("the template was not read", why=why, hint="use one that was described, unchanged")


def was_stopped(text: str) -> bool:
    """Whether a recorded template belongs to a stopped app."""
    return bool(text) and bool(parsed(text)["stopped"])


def bare(text: str) -> str:
    """Return a template's text without revision name and stamp, to compare byte by byte."""
    found = parsed(text)
    return canonical(found | {"template": without_stamp(found["template"])}).decode()


def without_nulls(data: Any) -> Any:
    """Return JSON without members that are null: Azure writes them or leaves them out as it likes."""
    if isinstance(data, dict):
        return {k: without_nulls(v) for k, v in data.items() if v is not None}
    return [without_nulls(v) for v in data] if isinstance(data, list) else data


def stamped(template: Json, ref: AppRef, *, revision: str, effect_key: str, incident: str) -> Json:
    """Return a copy that will become ``revision`` and carries the effect's stamp in place of any older one."""
    made = without_stamp(template)
    made["revisionSuffix"] = ref.suffix(revision)
    for container in made.get("containers") or []:
        stamp = [{"name": EFFECT_ENV, "value": effect_key}, {"name": INCIDENT_ENV, "value": incident}]
        container["env"] = [*(container.get("env") or []), *stamp]
    return made


def without_stamp(template: Json) -> Json:
    """Return a copy without revision name and stamp."""
    made = copy.deepcopy(template)
    made.pop("revisionSuffix", None)
    for container in made.get("containers") or []:
        env = [e for e in container.get("env") or [] if e.get("name") not in STAMP_ENV]
        if env:
            container["env"] = env
        else:
            container.pop("env", None)
    return made


def effect_of(native: str, template: Mapping[str, Any]) -> str | None:
    """Return the key of the effect that made a revision, None where a person made it.

    A deployment by hand inherits the environment of the template before it; only the suffix, which cannot be used
    twice, tells that the stamp is the revision's own.
    """
    env = (e for c in template.get("containers") or [] for e in c.get("env") or [])
    key = next((str(e.get("value")) for e in env if e.get("name") == EFFECT_ENV and e.get("value")), None)
    return key if key and native.endswith(f"--sre-{key[:8]}") else None


def tags_with(seen: Seen, more: Mapping[str, str]) -> Json:
    """Return the app's tags with our stamp replaced; a null takes one of ours away."""
    tags: Json = dict(seen.body.get("tags") or {})
    return {k: v for k, v in tags.items() if k not in TAGS} | {t: None for t in TAGS if t in tags} | dict(more)


def merge_patch(now: Json, wanted: Json) -> Json:
    """Return the JSON merge patch (RFC 7396) that makes ``wanted`` of ``now``; arrays are always sent whole."""
    patch: Json = {key: None for key, value in now.items() if value is not None and wanted.get(key) is None}
    for key, value in wanted.items():
        before = now.get(key)
        if value is None or before == value:
            continue
        patch[key] = merge_patch(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return patch


def version_token(seen: Seen) -> str:
    """Return a digest of everything that a change of ours rests on, as ARM keeps no etag of a container app.

    States and tags are not in it: a crash-looping revision changes states all the time, and our own stamp is a tag.
    """
    configuration = {k: v for k, v in (seen.properties.get("configuration") or {}).items() if k != "secrets"}
    parts = [uid_of(seen), seen.newest, text_of(seen), without_nulls(configuration)]
    return digest(parts)


def uid_of(seen: Seen) -> str:
    """Return which app this is: an app that was made again under the same name has another."""
    made = (seen.body.get("systemData") or {}).get("createdAt") or ""
    return f"{str(seen.body.get('id') or '').lower()}@{made}"


def traffic_of(seen: Seen) -> tuple[Traffic, ...]:
    """Return the traffic weights; without any, all of it follows the latest revision."""
    found = seen.ingress.get("traffic") or []
    weights = (
        Traffic(
            revision=None if t.get("latestRevision") else seen.ref.ours(str(t.get("revisionName") or "")) or None,
            percent=int(t.get("weight") or 0),
            tag=t.get("label") or None,
        )
        for t in found
    )
    return tuple(weights) or LATEST


def weights_of(ref: AppRef, traffic: tuple[Traffic, ...]) -> list[Json]:
    """Return traffic as Azure writes it."""
    return [
        ({"revisionName": ref.native(t.revision)} if t.revision else {"latestRevision": True})
        | {"weight": t.percent}
        | ({"label": t.tag} if t.tag else {})
        for t in traffic
    ]
