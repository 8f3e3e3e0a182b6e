"""An execution is what was applied: the intent stored before each call, and what came of it."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from pydantic import AwareDatetime

from agent.core.plan.action import Action
from agent.core.service.serving import ServingConfig, Target
from agent.core.value import Excerpt, Value, digest

UNDO_VALID: Final = timedelta(hours=24)
"""How long after its apply we may undo a change; then a person is asked."""


class EffectKind(StrEnum):
    """What we may do to a service."""

    APPLY = "apply"
    SHIFT = "shift"
    ROLL_BACK = "roll_back"


class EffectState(StrEnum):
    """How far an effect has come."""

    INTENDED = "intended"  # stored, perhaps called; a retry reads back the stamp before it calls
    STARTED = "started"  # the platform named an operation
    DONE = "done"
    FAILED = "failed"


class Effect(Value):
    """One change of a service, with the intent that makes a retry safe.

    Attributes:
        key: Derived from incident, plan and kind; the revision's name and stamp come from it.
        etag: Read once, before the intent was stored; never read again for a retry.
        operation: The platform's name for the work under way.
        started_at: When the platform had it first; None while only the intent is stored.
    """

    key: str
    kind: EffectKind
    state: EffectState = EffectState.INTENDED
    etag: str
    revision: str
    operation: str | None = None
    message: Excerpt = ""
    intended_at: AwareDatetime
    started_at: AwareDatetime | None = None
    finished_at: AwareDatetime | None = None

    @property
    def began_at(self) -> datetime:
        """When its time began: nothing comes up while an intent waits for somebody who can carry it out."""
        return self.started_at or self.intended_at

    def ends_by(self, limit_s: float) -> datetime:
        """Return when its time is over."""
        return self.began_at + timedelta(seconds=limit_s)


class Intent(Value):
    """What we are about to do to a service, as only the control database keeps it.

    No effect is made from anything else: what the incident says of it is for people. Its key is derived from incident,
    plan and kind, so a plan whose key finds an intent is byte for byte the plan that was approved.

    Attributes:
        decision: Id of the decision whose receipt it used.
        target: The state of the service that the plan was made for; None in stored intents from before it was kept.
        etag: Read once, when the intent was stored; a retry brings the same one. Empty in intents from before this was
            kept: they are never applied, only undone.
        revision: The revision that an apply or a roll-back makes, or that gets the traffic.
        prior_revision: The revision that served before the change.
        prior_config: What ``prior_template`` says; None where it was not kept.
        prior_template: Platform form of the template before the change (canonical JSON).
        prior_traffic: Platform form of the traffic before the change (canonical JSON).
        applied_at: When the apply was intended; its undo is valid for ``UNDO_VALID`` from then on.
        closed: Why it was refused; empty while it may be acted on.
    """

    key: str
    kind: EffectKind
    incident: str
    service: str
    decision: str
    plan_digest: str
    actions: tuple[Action, ...]
    staged: bool = False
    target: Target | None
    etag: str
    revision: str
    prior_revision: str | None = None
    prior_config: ServingConfig | None = None
    prior_template: str
    prior_traffic: str
    applied_at: AwareDatetime
    closed: str = ""

    def undo_valid(self, now: datetime) -> bool:
        """Whether the change may still be undone by us."""
        return now < self.applied_at + UNDO_VALID


class Execution(Value):
    """What was applied for one plan.

    Attributes:
        prior_template: Platform form of the template before the change (canonical JSON).
        prior_traffic: Platform form of the traffic before the change (canonical JSON).
        revision_native: The platform's own name of the new revision, where signals carry that.
        prior_ready: Whether the newest revision served before; where it did not, undoing does not bring it up.
        served_by_older: The older revision that served nevertheless.
    """

    plan: str
    effects: tuple[Effect, ...]
    revision_before: str | None
    revision_after: str | None = None
    revision_native: str | None = None
    prior_template: str
    prior_traffic: str
    prior_ready: bool | None
    served_by_older: str | None = None

    def effect(self, kind: EffectKind) -> Effect | None:
        """Return the effect of that kind, or None where it was never intended."""
        return next((e for e in self.effects if e.kind is kind), None)

    def with_effect(self, effect: Effect) -> "Execution":
        """Return a copy in which ``effect`` replaces the one with its key, or is added."""
        if any(e.key == effect.key for e in self.effects):
            return self.with_(effects=tuple(effect if e.key == effect.key else e for e in self.effects))
        return self.with_(effects=(*self.effects, effect))


class Change(StrEnum):
    """How the present plan's change stands in the world."""

    NONE = "none"  # nothing was called
    INTENDED = "intended"  # the intent is stored; the platform may have been called
    STARTED = "started"  # the platform works on it
    FAILED = "failed"  # the platform says that it failed; what it left stands until it is put back
    APPLIED = "applied"
    PUTTING_BACK = "putting_back"
    PUT_BACK = "put_back"


def present_change(execution: Execution | None) -> Change:
    """Return how the change of an execution stands; a plan that nobody carried out has changed nothing."""
    applied = execution.effect(EffectKind.APPLY) if execution is not None else None
    if execution is None or applied is None or was_not_applied(applied):
        return Change.NONE
    undo = execution.effect(EffectKind.ROLL_BACK)
    if undo is not None:
        return Change.PUT_BACK if undo.state is EffectState.DONE else Change.PUTTING_BACK
    if applied.state is EffectState.INTENDED and applied.operation is not None:
        return Change.STARTED  # what remains of it is to be called
    return {
        EffectState.INTENDED: Change.INTENDED,
        EffectState.STARTED: Change.STARTED,
        EffectState.FAILED: Change.FAILED,
        EffectState.DONE: Change.APPLIED,
    }[applied.state]


def was_not_applied(applied: Effect) -> bool:
    """Whether a change was given up before the platform took it."""
    return applied.state is EffectState.FAILED and applied.operation is None


def effect_key(incident: str, plan_digest: str, kind: EffectKind) -> str:
    """Return the key of an effect: the same for every retry, another for every other plan."""
    return digest([incident, plan_digest, kind])[:20]


def revision_name(service: str, key: str) -> str:
    """Return the name of an effect's revision: the whole service name (49 characters at most) and the key."""
    return f"{service[:49].rstrip('-')}-sre-{key[:8]}"
