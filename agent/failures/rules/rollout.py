"""Rules for pods that wait for a node: beside an old one that serves, or by themselves."""

import re

from agent.failures.rules.rule_input import RuleInput, Ruling
from agent.failures.signature import FailureClass

_READY_POD = re.compile(r"^\W*(\S+?)-([a-z0-9]{8,10})-[a-z0-9]{5}\s+([1-9]\d*)/\3\s+running\b", re.MULTILINE)
_PENDING_POD = re.compile(r"^\W*(\S+?)-([a-z0-9]{8,10})-[a-z0-9]{5}\s+0/\d+\s+pending\b", re.MULTILINE)
_LONG_PENDING = re.compile(
    r"\s0/\d{1,2}\s+pending\s+\d{1,4}(?: \([^)]{1,20}\))?\s+(?:[6-9]\ds|\d{3,}s|\d{1,4}[mhd])", re.IGNORECASE
)
"""A row of a table of pods: one that waits for a minute or longer."""
_OLD_REPLICA_SET = re.compile(r"oldreplicasets:\s+\S+ \(([1-9]\d*)/\1 replicas created\)")
_NEW_REPLICA_SET = re.compile(r"newreplicaset:\s+\S+ \([1-9]\d*/[1-9]\d* replicas created\)")
_ONE_SERVES = re.compile(r"[1-9]\d* available \| [1-9]\d* unavailable")
_STATUS_READY = re.compile(r'"?readyreplicas"?: ?[1-9]')
_STATUS_LACKS = re.compile(r'"?unavailablereplicas"?: ?[1-9]')
_AVAILABLE = re.compile(r"\btrue\s+minimumreplicasavailable")
_STALLED = re.compile(r"\bfalse\s+progressdeadlineexceeded")


def rollout(case: RuleInput) -> Ruling:
    """A ready pod of the old ReplicaSet beside the one that waits proves the deadlock; the waiting alone does not."""
    if _old_pod_serves(case.text) or _old_replica_serves(case.text):
        return Ruling(
            class_=FailureClass.ROLLOUT_DEADLOCK_NO_SPARE_GPU, fixes=("set_strategy", "scale_out"), confidence=0.92
        )
    return unschedulable(case)


def listed_as_pending(case: RuleInput) -> Ruling:
    """What a pod waits for its row does not say; beside a ready pod of the old ReplicaSet likely that one's card."""
    if _LONG_PENDING.search(case.line) is None:
        return Ruling(class_=FailureClass.UNKNOWN)
    if _old_pod_serves(case.text):
        return Ruling(class_=FailureClass.ROLLOUT_DEADLOCK_NO_SPARE_GPU, fixes=("set_strategy", "scale_out"))
    return Ruling()


def unschedulable(case: RuleInput) -> Ruling:
    """A node that lists what it can give, and no accelerator, lacks the device plugin or the driver."""
    lists = case.mentions("allocatable:", "capacity:") and case.mentions("ephemeral-storage:", "memory:")
    if lists and not re.search(r"(?:nvidia|amd|intel|google)\.com/(?:gpu|tpu): ", case.text):
        return Ruling(fixes=("fix_image_or_driver", "fix_quota"), confidence=0.7)
    return Ruling()


def _old_pod_serves(text: str) -> bool:
    pending = {(match[1], match[2]) for match in _PENDING_POD.finditer(text)}
    return any(name == ready[1] and hash_ != ready[2] for ready in _READY_POD.finditer(text) for name, hash_ in pending)


def _old_replica_serves(text: str) -> bool:
    if _OLD_REPLICA_SET.search(text) and _NEW_REPLICA_SET.search(text) and " 0 available" not in text:
        return True
    if _ONE_SERVES.search(text) and "updated" in text:
        return True
    if _AVAILABLE.search(text) and _STALLED.search(text):
        return True
    if _STATUS_READY.search(text) and _STATUS_LACKS.search(text):
        return True
    return "old replicas are pending termination" in text
