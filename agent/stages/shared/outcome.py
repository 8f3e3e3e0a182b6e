"""What a stage did, as a closed list: log field and metric label."""

from enum import StrEnum


class StageOutcome(StrEnum):
    """What came of one run of one stage."""

    MOVED = "moved"  # the incident is in another phase, or another step of it
    NOTED = "noted"  # something was written, the step is the same
    WAITING = "waiting"  # time, a signal or a person must come first
    DUPLICATE = "duplicate"  # known already
    HARMLESS = "harmless"  # nobody needs to know
    OPENED = "opened"  # a new incident
    JOINED = "joined"  # one more signal of an incident
    COUNTED = "counted"  # one more of the same, counted only
    NOT_OURS = "not_ours"  # another function owns what is due
