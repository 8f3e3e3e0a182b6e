"""The words for every phase, in one table: a label, a headline, what happens now, and the line of a timeline."""

from enum import StrEnum
from typing import Final, NamedTuple

from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase


class Tone(StrEnum):
    """How a state is coloured; colour never stands alone, the label is always there."""

    WAITING = "waiting"
    MOVING = "moving"
    GOOD = "good"
    BAD = "bad"
    QUIET = "quiet"


class PhaseWords(NamedTuple):
    """How one phase is said. An empty text is made from the state elsewhere, or stands in the row for all.

    Attributes:
        label: One to three words.
        headline: What the headline of an incident ends with.
        now: What happens now, in a sentence.
        event: The line of a timeline; ``{plan}`` and ``{name}`` stand for the plan, ``{by}`` for a person.
    """

    label: str = ""
    headline: str = ""
    now: str = ""
    event: str = ""
    tone: Tone = Tone.MOVING


_P, _W = Phase, PhaseWords
_NO_SUCCESS: Final = "No healthy signal came in time for {name}. The agent changed nothing."
# fmt: off
WORDS: Final[dict[Phase, PhaseWords]] = {
    _P.OPEN: _W("Detected", "being diagnosed",
                "Signals have arrived; the cause is being looked for.",
                "Signals have arrived; the cause is not known yet."),
    _P.DIAGNOSED: _W("Diagnosed", "a plan is being made", "A plan is being made."),
    _P.PLANNED: _W("Planned", "a plan is ready", "A plan is ready and is about to be shown.", "{plan} was made."),
    _P.ASKED: _W("Needs approval", "needs approval", "A plan needs an answer.", "{plan} needs approval.", Tone.WAITING),
    _P.APPROVED: _W("Approved", "fix approved", "The plan is checked once more, then applied.",
                    "{by} approved {name}."),
    _P.APPLYING: _W("Applying", "fix is being applied", "The change is ordered; it may have been made already.",
                    "{plan} was approved, and its change was ordered."),
    _P.VERIFYING: _W("Verifying", "fix applied, being verified",
                     "The change is applied; whether it helped is about to be measured.",
                     "The rollout of {name} ended; whether the service works is being measured."),
    _P.RESOLVED: _W("Resolved", "fixed", tone=Tone.GOOD),
    _P.ROLLING_BACK: _W("Rolling back", "fix is being rolled back",
                        event="{plan} was not kept; whatever it changed is to be put back."),
    _P.ROLLED_BACK: _W("Rolled back", "fix rolled back", event="Whatever {name} changed was put back.", tone=Tone.BAD),
    _P.REFUSED: _W("Refused", "fix refused at the final check",
                   "The plan was approved and then refused at the final check, so it was not applied.",
                   "{plan} was approved and then refused at the final check, so it was not applied.", Tone.BAD),
    _P.REJECTED: _W("Rejected", "fix rejected", "The plan was rejected. Whether another plan is left is being checked.",
                    "{by} rejected {name}; it was not applied.", Tone.QUIET),
    _P.EXPIRED: _W("Expired", "nobody answered in time", "Nobody answered in time.",
                   "Nobody answered {name} in time; it was not applied.", Tone.BAD),
    _P.SUPERSEDED: _W("Withdrawn", "plan withdrawn, more became known",
                      "More became known, so the plan was withdrawn before anybody answered.",
                      "More became known, so {name} was withdrawn; it was not applied.", Tone.QUIET),
    _P.ESCALATED: _W("Escalated", "a person must take over",
                     "A person must take over: the agent does nothing more here.", tone=Tone.BAD),
    _P.SELF_RECOVERED: _W("Recovered", "healthy again",
                          "The service is healthy again; the agent does nothing more here.", tone=Tone.GOOD),
    _P.WITHDRAWN: _W("Taken back", "taken back", "The request was taken back before anybody approved it.",
                     "The request was taken back, and with it {name}.", Tone.QUIET),
    _P.CLOSED: _W("Closed", "closed", "A person closed the incident; the agent does nothing more here.",
                  tone=Tone.QUIET),
}
OF_TASK: Final[dict[Phase, PhaseWords]] = {
    _P.ASKED: _W("Needs a person", event="{plan} is a task for a person."),
    _P.APPROVED: _W("Assigned", "a person has it", event="{by} took {name} on."),
    _P.APPLYING: _W("", "a person has it", event="A person carries out {name}."),
    _P.VERIFYING: _W("Assigned", "a person has it", event="A person carries out {name}; the agent changes nothing and "
                     "watches for a healthy signal."),
    _P.RESOLVED: _W("", "healthy again",
                    "The service is healthy again while a person had the task. The agent changed nothing."),
    _P.ROLLING_BACK: _W(
        "No success seen", "no success seen in time",
        "No healthy signal came in time. The agent changed nothing, so there is nothing to put back.", _NO_SUCCESS),
    _P.ROLLED_BACK: _W(
        "No success seen", "no success seen in time",
        "No healthy signal came in time. The agent changed nothing. What to do next is being decided.", _NO_SUCCESS),
    _P.REFUSED: _W("", "task refused at the final check",
                   event="{plan} was taken on and then refused at the final check."),
    _P.REJECTED: _W("", "task rejected", event="{by} rejected {name}."),
    _P.EXPIRED: _W(event="Nobody took {name} on in time."),
    _P.SUPERSEDED: _W(event="More became known, so {name} was withdrawn."),
}
"""What differs where a person carries the plan out."""
OF_REQUEST: Final[dict[Phase, PhaseWords]] = {
    _P.OPEN: _W("Requested", "being checked", "Its plan is being made.", "{by} asked for a change."),
    _P.PLANNED: _W("", "ready for approval"),
    _P.APPROVED: _W("", "approved"),
    _P.APPLYING: _W("", "being applied"),
    _P.VERIFYING: _W("", "applied, being verified"),
    _P.RESOLVED: _W("", "done"),
    _P.ROLLING_BACK: _W("", "being rolled back"),
    _P.ROLLED_BACK: _W("", "rolled back"),
    _P.REFUSED: _W("", "refused", "The request was refused.", "The request was refused; no plan was made."),
    _P.REJECTED: _W("", "rejected", "The request was rejected."),
    _P.SUPERSEDED: _W("", "withdrawn"),
    _P.WITHDRAWN: _W(event="The request was taken back before its plan was made."),
    _P.CLOSED: _W("", "", "The request is closed."),
}
"""What differs for a change that a person asked for; its lines of a timeline are those of a request without a plan."""
# fmt: on


def phase_words(phase: Phase, incident: Incident) -> PhaseWords:
    """Return label, headline and sentence of a phase: as a request says them, else as a task, else as an incident."""
    task = incident.plan is not None and incident.plan.by_person
    rows = [OF_REQUEST.get(phase)] * (incident.request is not None) + [OF_TASK.get(phase)] * task + [WORDS[phase]]
    label, headline, now = (next((t for row in rows if row and (t := row[n])), "") for n in range(3))
    return WORDS[phase]._replace(label=label, headline=headline, now=now)


def label_of(phase: Phase) -> str:
    """Return the short label of a phase."""
    return WORDS[phase].label


def tone_of(phase: Phase) -> Tone:
    """Return the tone of a phase."""
    return WORDS[phase].tone
