"""A follow-up is something to do after an incident, so that it does not come back or is seen sooner."""

from dataclasses import dataclass
from enum import StrEnum


class FollowUpKind(StrEnum):
    """What a follow-up is good for."""

    PREVENT = "prevent"  # it does not happen again
    DETECT = "detect"  # it is seen sooner
    FINISH = "finish"  # what this incident left undone
    RESPOND = "respond"  # people answer sooner


@dataclass(frozen=True, kw_only=True)
class FollowUp:
    """One action, a sentence each."""

    kind: FollowUpKind
    text: str
