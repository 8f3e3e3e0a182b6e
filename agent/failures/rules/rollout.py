"""Rules for pods that wait for a node: beside an old one that serves, or by themselves."""

import re
from dataclasses import dataclass

from agent.failures.rules.rule_input import RuleInput, Ruling
from agent.failures.signature import FailureClass

_ROW = re.compile(
    r"^[^\w\n]{0,40}((?:[a-z0-9-]{1,63} +)?\S{1,200}?)-([a-z0-9]{8,10})-([a-z0-9]{5})"
    r"[^\S\n]+(\d{1,2})/(\d{1,2})[^\S\n]+(running|pending)\b"
    r"(?:[^\S\n]+\d{1,4}(?: \([^)\n]{1,20}\))?[^\S\n]+((?:\d{1,5}[smhd]){1,3}))?",
    re.MULTILINE,
)
"""A row of a table of pods: Deployment behind its namespace, ReplicaSet, pod, ready and all containers, status, age."""
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
LONG_S = 60
"""A pod that waits for less may be the next to start."""
_OLD_REPLICA_SET = re.compile(r"oldreplicasets:\s+\S+ \(([1-9]\d*)/\1 replicas created\)")
_NEW_REPLICA_SET = re.compile(r"newreplicaset:\s+\S+ \([1-9]\d*/[1-9]\d* replicas created\)")
_REPLICAS = re.compile(
    r"(\d{1,5}) desired \| (\d{1,5}) updated \| (\d{1,5}) total"
    r"(?: \| ([1-9]\d{0,4}) available \| [1-9]\d{0,4} unavailable)?"
)
"""As ``kubectl describe`` counts a Deployment's: more than it wants and than are new while old ones serve on."""
_STATUS_READY = re.compile(r'"?readyreplicas"?: ?[1-9]')
_STATUS_LACKS = re.compile(r'"?unavailablereplicas"?: ?[1-9]')
_AVAILABLE = re.compile(r"\btrue\s+minimumreplicasavailable")
_STALLED = re.compile(r"\bfalse\s+progressdeadlineexceeded")


def rollout(case: RuleInput) -> Ruling:
    """A ready pod of the old ReplicaSet beside the one that waits proves the deadlock; the waiting alone does not."""
    if _waits_beside_ready(case.text) or _old_replica_serves(case.text):
        return Ruling(
            class_=FailureClass.ROLLOUT_DEADLOCK_NO_SPARE_GPU, fixes=("set_strategy", "scale_out"), confidence=0.92
        )
    return unschedulable(case)


def listed_as_pending(case: RuleInput) -> Ruling:
    """What a pod waits for its row does not say; beside an older, ready one of its Deployment it is likely the card."""
    return Ruling() if _waits_beside_ready(case.text, long_s=LONG_S) else Ruling(class_=FailureClass.UNKNOWN)


def unschedulable(case: RuleInput) -> Ruling:
    """A node that lists what it can give, and no accelerator, lacks the device plugin or the driver."""
    lists = case.mentions("allocatable:", "capacity:") and case.mentions("ephemeral-storage:", "memory:")
    if lists and not re.search(r"(?:nvidia|amd|intel|google)\.com/(?:gpu|tpu): ", case.text):
        return Ruling(fixes=("fix_image_or_driver", "fix_quota"), confidence=0.7)
    return Ruling()


@dataclass(frozen=True, kw_only=True)
class _Pod:
    deployment: str
    replica_set: str
    ready: bool
    waits: bool
    age_s: int | None


def _pods(text: str) -> list[_Pod]:
    """The pods of a text's tables, each as its last row says."""
    last: dict[tuple[str, str, str], _Pod] = {}
    for name, set_, pod, up, all_, status, age in _ROW.findall(text):
        last[name, set_, pod] = _Pod(
            deployment=name,
            replica_set=set_,
            ready=status == "running" and up == all_ != "0",
            waits=status == "pending" and up == "0",
            age_s=sum(int(n) * _SECONDS[unit] for n, unit in re.findall(r"(\d+)([smhd])", age)) if age else None,
        )
    return list(last.values())


def _waits_beside_ready(text: str, *, long_s: int | None = None) -> bool:
    """Whether a pod waits beside a ready one of another ReplicaSet of its Deployment.

    With ``long_s`` by their ages: it has waited for so many seconds, and the ready one is older.
    """
    pods = _pods(text)
    return any(
        new.waits and old.ready and new.deployment == old.deployment and new.replica_set != old.replica_set
        and (long_s is None or _is_newer(new, old, long_s))
        for new in pods
        for old in pods
    )  # fmt: skip


def _is_newer(new: _Pod, old: _Pod, long_s: int) -> bool:
    return new.age_s is not None and old.age_s is not None and long_s <= new.age_s < old.age_s


def _old_replica_serves(text: str) -> bool:
    if _OLD_REPLICA_SET.search(text) and _NEW_REPLICA_SET.search(text) and " 0 available" not in text:
        return True
    counts = _REPLICAS.findall(text)
    if len(counts) == 1 and counts[0][3] and int(counts[0][2]) > max(int(counts[0][0]), int(counts[0][1])):
        return True  # of one Deployment: another's old replica holds nothing of this one's
    if _AVAILABLE.search(text) and _STALLED.search(text):
        return True
    if _STATUS_READY.search(text) and _STATUS_LACKS.search(text):
        return True
    return "old replicas are pending termination" in text
