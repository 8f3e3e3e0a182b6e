"""A Cloud Run template as canonical JSON and back, without loss; our stamp on it, and the traffic beside it."""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

from agent.core.service.serving import EFFECT_LABEL, STAMP_LABELS, Traffic
from agent.core.value import canonical
from agent.errors import InputRejected

MANUAL = "@manual"  # a count of instances that is set on the service, above its template, with the stamp of who set it
REVISION_NOTE = "sre-agent-revision"
SCALING_NOTE = "sre-agent-scaling-before"
WIRE = "@wire"  # the bytes, beside the JSON, where the service has fields that this client does not know
INCIDENT_LABEL = next(label for label in STAMP_LABELS if label != EFFECT_LABEL)

_LABEL_VALUE = re.compile(r"[a-z0-9_-]{1,63}")


def text_of(template: Any) -> str:
    """Return a ``RevisionTemplate`` message as canonical JSON; with its bytes where JSON alone would lose something."""
    data = _json(template)
    known = type(template)()
    known.CopyFrom(template)
    known.DiscardUnknownFields()
    if known.ByteSize() != template.ByteSize():
        data[WIRE] = base64.b64encode(template.SerializeToString(deterministic=True)).decode()
    return canonical(data).decode()


def service_text(service: Any) -> str:
    """Return the template of a ``Service`` message as ``text_of`` does, with a count of instances that stands above."""
    text = text_of(service.template)
    if not service.scaling.HasField("manual_instance_count"):
        return text
    noted = dict(service.annotations)
    manual = {
        "count": service.scaling.manual_instance_count,
        "effect": noted.get(EFFECT_LABEL, ""),
        "revision": noted.get(REVISION_NOTE, ""),
        "before": noted.get(SCALING_NOTE, ""),
    }
    return _with_manual(text, manual)


def _with_manual(text: str, manual: object) -> str:
    data = json.loads(text)  # not strict: a template that we stored
    return canonical(data | {MANUAL: manual}).decode()


def manual_of(text: str) -> dict[str, Any] | None:
    """Return what ``service_text`` noted above the template; None where the template alone counts."""
    found = json.loads(text).get(MANUAL)  # not strict: a template that we stored
    return found if isinstance(found, dict) else None


def template_of(text: str) -> Any:
    """Return the ``RevisionTemplate`` message of a text that ``text_of`` made.

    Raises:
        InputRejected: It is none, or its two forms differ.
    """
    from google.cloud import run_v2
    from google.protobuf import json_format

    message = run_v2.RevisionTemplate.pb(run_v2.RevisionTemplate())
    try:
        data = json.loads(text)  # not strict: a template that we stored
        wire = data.pop(WIRE, None)
        data.pop(MANUAL, None)
        json_format.ParseDict(data, message)
        if wire is not None:
            whole = type(message).FromString(base64.b64decode(wire, validate=True))
            if _json(whole) != _json(message):
                raise _unreadable("its JSON and its bytes differ")
            message = whole
    except (ValueError, AttributeError, TypeError, json_format.ParseError) as error:
        raise _unreadable(str(error)[:300]) from error
    return message


def stamped(template: Any, *, revision: str, effect_key: str, incident: str) -> Any:
    """Return a copy that will become ``revision`` and carries the effect's stamp in place of any older one."""
    assert _LABEL_VALUE.fullmatch(effect_key), f"effect key {effect_key!r} is no label value"
    copy = without_stamp(template)
    copy.revision = revision
    copy.labels[EFFECT_LABEL] = effect_key
    copy.labels[INCIDENT_LABEL] = label_value(incident)
    return copy


def effect_of(revision: str, labels: Mapping[str, str]) -> str | None:
    """Return the key of the effect that made a revision, None where a person made it.

    A deployment by hand inherits the labels of the template before it; only the name, which cannot be inherited,
    tells that the stamp is the revision's own.
    """
    key = labels.get(EFFECT_LABEL)
    return key if key and revision.endswith(f"-sre-{key[:8]}") else None


def without_stamp(template: Any) -> Any:
    """Return a copy without revision name and stamp."""
    copy = type(template)()
    copy.CopyFrom(template)
    copy.revision = ""
    for label in STAMP_LABELS:
        copy.labels.pop(label, None)
    return copy


def bare(text: str) -> str:
    """Return a template's text without revision name and stamp, to compare byte by byte."""
    manual = manual_of(text)
    found = text_of(without_stamp(template_of(text)))
    return found if manual is None else _with_manual(found, manual.get("count"))


def label_value(text: str) -> str:
    """Return ``text`` as Cloud Run takes it for a label's value: lower-case, at most 63 characters."""
    return re.sub(r"[^a-z0-9_-]", "-", text.lower())[:63]


def traffic_of(targets: Any) -> tuple[Traffic, ...]:
    """Return the traffic policy of a service's ``traffic``."""
    return tuple(Traffic(revision=t.revision or None, percent=t.percent, tag=t.tag or None) for t in targets)


def targets_of(traffic: tuple[Traffic, ...]) -> list[Any]:
    """Return the policy as ``TrafficTarget`` messages, ready for a ``Service``."""
    from google.cloud import run_v2

    kinds = run_v2.TrafficTargetAllocationType
    return [
        run_v2.TrafficTarget(
            type_=kinds.TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION
            if t.revision
            else kinds.TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST,
            revision=t.revision or "",
            percent=t.percent,
            tag=t.tag or "",
        )
        for t in traffic
    ]


def _json(message: Any) -> dict[str, Any]:
    from google.protobuf import json_format

    found: dict[str, Any] = json_format.MessageToDict(message)
    return found


def _unreadable(why: str) -> InputRejected:
    return InputRejected("the template was not read", why=why, hint="use one that was described, unchanged")
