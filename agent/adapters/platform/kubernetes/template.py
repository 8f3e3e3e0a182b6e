"""What a change replaces and an undo puts back, as canonical JSON; our stamp on it and on the object."""

import copy
import json
from typing import Any, Final

from agent.adapters.platform.kubernetes.workload import DELETES, Seen, annotations
from agent.core.service.serving import EFFECT_LABEL, STAMP_LABELS
from agent.core.value import canonical, digest
from agent.errors import InputRejected
from agent.strict_json import read_object

Json = dict[str, Any]

INCIDENT: Final = next(label for label in STAMP_LABELS if label != EFFECT_LABEL)
REVISION: Final = "sre-agent-revision"
TEMPLATE: Final = "sre-agent-template"  # digest of the template that the effect made, as the server has defaulted it
EARLIER: Final = "sre-agent-earlier"  # effects before the present one: KEY=REVISION, separated by blanks
STRATEGY_LATER: Final = "sre-agent-strategy"  # the strategy to put back once the restored template serves
PODS_LATER: Final = "sre-agent-pods"  # uids of the pods that a change deletes after its patch, separated by blanks
STAMPS: Final = (EFFECT_LABEL, INCIDENT, REVISION, TEMPLATE)
RESUMES: Final = "sre-agent-resumes"  # how many replicas a start gives back
KEPT_EFFECTS: Final = 16


def strategy_field(kind: str) -> str:
    """Return how a kind of workload calls its strategy."""
    return "updateStrategy" if kind == "statefulset" else "strategy"


def text_of(seen: Seen) -> str:
    """Return what an undo would put back, and which effect of ours made it, where one did."""
    spec = seen.spec
    parts: Json = {
        "revision": our_revision(seen) or "",
        "strategy": spec.get(strategy_field(seen.workload.kind)) or {},
        "template": spec["template"],
    }
    if not seen.scaled_by:
        parts["replicas"] = spec.get("replicas", 1)
    if "progressDeadlineSeconds" in spec:
        parts["progress_deadline_s"] = spec["progressDeadlineSeconds"]
    return canonical(parts).decode()


def parts_of(text: str) -> Json:
    """Read what ``text_of`` wrote.

    Raises:
        InputRejected: It is none.
    """
    try:
        parts = json.loads(text)  # not strict: a template that we stored
        _ = parts["template"]["spec"], parts["strategy"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputRejected(
            "the template was not read", why=str(error)[:300], hint="use one that was described, unchanged"
        ) from error
    return parts if isinstance(parts, dict) else {}


def bare(template: Json) -> Json:
    """Return a pod template without our stamp and without what controllers add, to compare."""
    copied = copy.deepcopy(template)
    metadata = copied.get("metadata") or {}
    for kind, names in (("annotations", STAMPS), ("labels", ("pod-template-hash",))):
        held = metadata.get(kind) or {}
        for name in names:
            held.pop(name, None)
        if not held:
            metadata.pop(kind, None)
    return copied


def same(one: str, other: str) -> bool:
    """Whether two texts say the same but for our stamp and the number of replicas, as long as there are any."""

    def compared(text: str) -> Json:
        parts = parts_of(text)
        kept = {k: v for k, v in parts.items() if k not in {"revision", "replicas"}}
        return kept | {"template": bare(parts["template"]), "stopped": parts.get("replicas") == 0}

    return compared(one) == compared(other)


def stamped(template: Json, stamp: dict[str, str | None]) -> Json:
    """Return a copy of a pod template that carries an effect's stamp in place of any older one."""
    copied = bare(template)
    held = copied.setdefault("metadata", {}).setdefault("annotations", {})
    held.update({name: value for name, value in stamp.items() if name in STAMPS})
    return copied


def our_revision(seen: Seen) -> str | None:
    """Return the revision that the present template is, where an effect of ours made it and nobody changed it since."""
    held = annotations(seen.body)
    made = held.get(TEMPLATE)
    return held.get(REVISION) if made and made == digest(bare(seen.spec["template"])) else None


def effects_of(body: Json) -> dict[str, str]:
    """Return the revision of every effect on record at the object, the present one last."""
    held = annotations(body)
    pairs = (pair.partition("=") for pair in held.get(EARLIER, "").split())
    found = {key: revision for key, _, revision in pairs if key and revision}
    key, revision = held.get(EFFECT_LABEL), held.get(REVISION)
    return found | ({key: revision} if key and revision else {})


def set_revision(replica_set: Json) -> str:
    """Return the name of a ReplicaSet's revision: ours where its template bears our stamp and is what we made of it.

    A template that somebody changes by hand inherits the stamp, and then is not what the stamp's digest says.
    """
    template = replica_set["spec"]["template"]
    held = annotations(template)
    made = held.get(TEMPLATE)
    ours = made is not None and made == digest(bare(template))
    return held.get(REVISION, replica_set["metadata"]["name"]) if ours else str(replica_set["metadata"]["name"])


def spec_steps(seen: Seen, spec: Json) -> list[Json]:
    """Return the JSON patch that makes the workload's ``spec`` that one; fields that are equal are not named."""
    return [
        {"op": "add", "path": f"/spec/{name}", "value": value}
        for name, value in spec.items()
        if value != seen.spec.get(name)
    ]


def stamp_steps(seen: Seen, stamp: dict[str, str | None]) -> list[Json]:
    """Return the JSON patch that writes annotations of the object, or (None) takes them away."""
    held = annotations(seen.body)
    steps: list[Json] = []
    if not held:
        version = seen.body["metadata"]["resourceVersion"]
        steps.append({"op": "test", "path": "/metadata/resourceVersion", "value": version})
        steps.append({"op": "add", "path": "/metadata/annotations", "value": {}})
    for name, value in stamp.items():
        path = f"/metadata/annotations/{name}"
        if value is not None:
            steps.append({"op": "add", "path": path, "value": value})
        elif name in held:
            steps.append({"op": "remove", "path": path})
    return steps


def deletion_steps(seen: Seen, effect_key: str) -> list[Json]:
    """Return the JSON patch that says whose deletion follows.

    It is a label, because an annotation would move a Deployment's generation, and a retry could not tell that from
    somebody else's change.
    """
    if seen.body["metadata"].get("labels"):
        return [{"op": "add", "path": f"/metadata/labels/{DELETES}", "value": effect_key}]
    return [
        {"op": "test", "path": "/metadata/labels", "value": None},
        {"op": "add", "path": "/metadata/labels", "value": {DELETES: effect_key}},
    ]


def earlier_effects(seen: Seen) -> str:
    """Return what to keep on record of the effects so far."""
    return " ".join(f"{key}={revision}" for key, revision in list(effects_of(seen.body).items())[-KEPT_EFFECTS:])


def strategy_later(seen: Seen) -> Json:
    """Return the strategy that is still to be restored, as it was noted at the object.

    Raises:
        InputRejected: Somebody else wrote there.
    """
    noted = annotations(seen.body)[STRATEGY_LATER]
    return read_object(noted.encode(), what="noted strategy", limit=10_000, hint="restore the strategy by hand")
