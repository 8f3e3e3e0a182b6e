"""The metrics by name: what each counts, in which unit, by which labels; the page of metrics is made from it."""

from collections.abc import Collection
from enum import StrEnum
from typing import Final

from agent.core.change.verification import Verdict
from agent.core.incident.observed import ANSWERS, DECISION, DETECTION, ENDINGS, FIRST_DIAGNOSIS, PLAN, RECOVERY
from agent.core.value import Value
from agent.entrypoints.metrics.incident_pages import OPEN_PAGE, OPEN_PAGES
from agent.failures.signature import FailureClass

SHORT_S: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0)
LONG_S: Final = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 43200.0, 86400.0)
OTHER: Final = "other"
"""The label of whatever is none of a closed list and no watched service."""

_CLASSES: Final = frozenset(FailureClass)


class Kind(StrEnum):
    """The types of the exposition format."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Metric(Value):
    """One metric.

    Attributes:
        name: As it stands in the exposition, ``_total`` of a counter included.
        labels: Names of its labels; every value is one of a closed list, or the name of a watched service.
        fixed: The label beside the service that has its values from a closed list, with the list.
        buckets: Upper bounds of a histogram, seconds.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    fixed: tuple[str, tuple[str, ...]] | None = None
    buckets: tuple[float, ...] = ()


def _took(name: str, what: str, buckets: tuple[float, ...]) -> Metric:
    return Metric(name=name, kind=Kind.HISTOGRAM, help=what, labels=("service",), buckets=buckets)


def _count(name: str, what: str, **fixed: tuple[str, ...]) -> Metric:
    label = next(iter(fixed.items()), None)
    labels = ("service", *fixed)
    return Metric(name=name, kind=Kind.COUNTER, help=what, labels=labels, fixed=label)


def _gauge(name: str, what: str, *labels: str) -> Metric:
    return Metric(name=name, kind=Kind.GAUGE, help=what, labels=labels)


TOOK: Final = {
    DETECTION: _took(
        "sre_detection_seconds", "From the first sign of trouble at its source to the opening of the incident.", SHORT_S
    ),
    FIRST_DIAGNOSIS: _took(
        "sre_first_diagnosis_seconds", "From the opening of an incident to its first diagnosis.", SHORT_S
    ),
    PLAN: _took("sre_plan_seconds", "From the opening of an incident to its first plan.", SHORT_S),
    DECISION: _took("sre_decision_seconds", "From the first question to the first approval or rejection.", LONG_S),
    RECOVERY: _took("sre_recovery_seconds", "From the opening of an incident to its end in health.", LONG_S),
}
"""By the part of an incident's life."""

OPENED: Final = _count("sre_incidents_opened_total", "Incidents that were opened.")
ENDED: Final = _count(
    "sre_incidents_ended_total", "Incidents that came to an end, by how they ended.", outcome=tuple(ENDINGS.values())
)
CLASSES: Final = _count(
    "sre_incidents_classified_total",
    "Incidents that came to an end, by their failure class then.",
    **{"class": (*FailureClass, OTHER)},
)
PLANS: Final = _count("sre_plans_total", "Plans that were made.")
DECISIONS: Final = _count(
    "sre_decisions_total", "Answers to plans; expired is the lack of one.", answer=tuple(ANSWERS.values())
)
REFUSED: Final = _count("sre_plans_refused_total", "Approved plans that were refused at the last look.")
VERDICTS: Final = _count("sre_verifications_total", "Verdicts about applied changes.", verdict=tuple(Verdict))
ROLL_BACKS: Final = _count("sre_roll_backs_total", "Changes that were undone.")
MODEL_CALLS: Final = _count("sre_model_calls_total", "Questions sent to the model about incidents.")
MODEL_TOKENS: Final = _count(
    "sre_model_tokens_total", "Tokens of questions (input) and answers (output).", direction=("input", "output")
)
MODEL_S: Final = _count("sre_model_wait_seconds_total", "Seconds of waiting for the model.")
MODEL_USD: Final = _count(
    "sre_model_cost_usd_total", "What those tokens cost at the prices that are set now, USD; absent without a price."
)
HISTORY: Final = (
    *TOOK.values(), OPENED, ENDED, CLASSES, PLANS, DECISIONS, REFUSED, VERDICTS, ROLL_BACKS, MODEL_CALLS, MODEL_TOKENS,
    MODEL_S, MODEL_USD,
)  # fmt: skip
"""Counted from the record of all live incidents; change requests and replays are left out."""

INCIDENTS: Final = _gauge("sre_incidents", "Open incidents.", "service", "phase", "class", "run")
REQUESTS: Final = _gauge("sre_change_requests", "Open change requests.", "phase")
WAITING: Final = _gauge("sre_plans_waiting", "Plans that need an answer.")
WAITING_S: Final = _gauge("sre_plans_waiting_oldest_seconds", "How long the oldest of them has waited; 0 without one.")
TRUNCATED: Final = _gauge(
    "sre_incidents_truncated",
    f"1 where {OPEN_PAGES * OPEN_PAGE:,} incidents or more are open: the oldest, and their plans, may then be missing.",
)
QUEUE_AGE: Final = _gauge("sre_queue_age_seconds", "Age of the oldest message that waits; dead letters do not count.")
QUEUE: Final = _gauge("sre_queue_messages", "Messages that wait.", "subscription")
DEAD_LETTERS: Final = _gauge("sre_dead_letters", "Dead letters that wait for a person; 1000 at most.")
DRIFT: Final = _gauge(
    "sre_service_drift", "Settings of a service that differ from what was declared or approved.", "service"
)
KILL_SWITCH: Final = _gauge("sre_kill_switch", "1 where changes are stopped, or nobody can say.")
COUNTED: Final = _gauge("sre_history_counted", "1 once every stored incident is counted; before, no counter is shown.")
PRESENT: Final = (
    INCIDENTS, REQUESTS, WAITING, WAITING_S, TRUNCATED, QUEUE_AGE, QUEUE, DEAD_LETTERS, DRIFT, KILL_SWITCH, COUNTED,
)  # fmt: skip
"""As it stands at the scrape."""


def class_label(class_: str) -> str:
    """Return a failure class as a label; a stored word that is none is `other`."""
    return class_ if class_ in _CLASSES else OTHER


def service_label(service: str, watched: Collection[str]) -> str:
    """Return a service as a label; a name that is watched no more, or never was, is `other`."""
    return service if service in watched else OTHER
