"""An execution is what was applied: the intent stored before each call, and what came of it."""

from enum import StrEnum

from pydantic import AwareDatetime

from agent.core.value import Value, digest


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
        prior_template: The template as it was before, put back byte by byte by a roll-back.
    """

    key: str
    kind: EffectKind
    state: EffectState = EffectState.INTENDED
    etag: str
    revision: str
    operation: str | None = None
    message: str = ""
    intended_at: AwareDatetime
    finished_at: AwareDatetime | None = None


class Execution(Value):
    """What was applied for one plan.

    Attributes:
        prior_template: Platform form of the template before the change (canonical JSON).
        prior_traffic: Platform form of the traffic before the change (canonical JSON).
        prior_ready: Whether the newest revision served before; where it did not, undoing does not bring it up.
        served_by_older: The older revision that served nevertheless.
    """

    plan: str
    effects: tuple[Effect, ...]
    revision_before: str | None
    revision_after: str | None = None
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


def effect_key(incident: str, plan_digest: str, kind: EffectKind) -> str:
    """Return the key of an effect: the same for every retry, another for every other plan."""
    return digest([incident, plan_digest, kind])[:20]


def revision_name(service: str, key: str) -> str:
    """Return the name of an effect's revision: the whole service name (49 characters at most) and the key."""
    return f"{service[:49].rstrip('-')}-sre-{key[:8]}"
