"""The forms of a service's page: what was typed, what it asks for, and what is wrong with it, field by field."""

from collections.abc import Mapping
from typing import Final

from pydantic import Field, ValidationError

from agent.core.change.asked_settings import AskedSettings, SettingNotRead, ShapeOf, TypeOf, actions_of
from agent.core.change.request import WHY_CHARS
from agent.core.decision.policy import Policy
from agent.core.plan.action import Action, Lifecycle, LifecycleOperation, Restart, SetFlag
from agent.core.plan.lifecycle import stops_answering
from agent.core.planning.by_hand import lifecycle_commands
from agent.core.planning.requested import NothingToChange
from agent.core.service.services import Service
from agent.core.service.serving import Live, Target
from agent.core.value import Value
from agent.errors import InputRejected, SreError
from agent.stages.preview_change import ChangePreview
from agent.stages.request_change import AlreadyOpen
from agent.strict_json import read_object

CHANGE, LIFECYCLE = "change", "lifecycle"  # the two forms of the page
LINES: Final = 16
RESTART: Final = "restart"
TARGET_LIMIT: Final = 2000

_FIELD_OF: Final = {
    "set_env": "set_env",
    "set_scaling": "scale",
    "set_concurrency": "concurrency",
    "set_resources": "resources",
    "set_accelerator": "accelerator",
    "set_instance_type": "instance_type",
    "set_model": "model",
    "restart": "lifecycle",
}


class Typed(Value):
    """What a person typed into one of the forms, as it was sent; shown again where it is not taken.

    Attributes:
        form: Which of the forms: ``change`` or ``lifecycle``.
        lifecycle: ``restart``, ``start``, ``stop`` or ``delete``.
        target: The state of the service that the page showed, as JSON; empty where it showed none.
    """

    form: str = CHANGE
    set_flag: str = ""
    unset_flag: str = ""
    set_env: str = ""
    scale: str = ""
    concurrency: str = ""
    resources: str = ""
    model: str = ""
    accelerator: str = ""
    instance_type: str = ""
    lifecycle: str = ""
    confirmed: str = ""
    why: str = ""
    supersede: str = ""
    target: str = ""


class Operation(Value):
    """A lifecycle that may be asked for, and what follows from it."""

    name: str
    label: str
    says: str


class ChangeForm(Value):
    """What the forms need; ``objection`` says why this person cannot ask for a change here.

    Attributes:
        has_type: Whether its machine can be given another type.
        open: Whether something is open on the service, which the request may take the place of.
        typed: What stands in the fields.
        wrong: What is wrong, by field; under the empty name what is about all of it.
        shown: Which of the forms is unfolded.
        preview: What it would be.
        operations: The lifecycles that may be asked for.
        by_hand: Commands for what policy does not let the agent do.
    """

    service: str
    token: str
    objection: str = ""
    flags: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    accelerators: tuple[str, ...] = ()
    has_type: bool = False
    open: bool = False
    typed: Typed = Typed()
    wrong: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    shown: str = ""
    preview: ChangePreview | None = None
    operations: tuple[Operation, ...] = ()
    by_hand: tuple[str, ...] = ()


def read_typed(form: Mapping[str, str]) -> Typed:
    """Return what was sent; what is no field of ours is not looked at."""
    said = {name: form.get(name, "").strip() for name in Typed.model_fields}
    return Typed(**said | {"form": LIFECYCLE if said["form"] == LIFECYCLE else CHANGE})


def typed_of(asked: AskedSettings, *, why: str) -> Typed:
    """Return the form filled in with settings, for the person to look over."""
    lines = {name: "\n".join(getattr(asked, name)) for name in ("set_flag", "unset_flag", "set_env")}
    plain = {name: getattr(asked, name) for name in ("scale", "concurrency", "resources", "accelerator")}
    return Typed(why=why, **lines, **plain)


def actions_typed(typed: Typed, live: Live | None, *, shape_of: ShapeOf, type_of: TypeOf) -> tuple[Action, ...]:
    """Return what was typed as actions.

    Args:
        typed: One of the forms.
        live: The service; None where it is not described from here.
        shape_of: CPU and memory for an accelerator that is named without them.
        type_of: What a type of machine has.

    Raises:
        SettingNotRead: A word cannot be read, or something is missing; it names the field.
    """
    actions = _lifecycle(typed, live) if typed.form == LIFECYCLE else _settings(typed, shape_of, type_of)
    if not typed.why or len(typed.why) > WHY_CHARS:
        why = f"it needs a reason of 1 to {WHY_CHARS} characters"
        raise SettingNotRead(why, "approvers read it", field="why")
    return actions


def _settings(typed: Typed, shape_of: ShapeOf, type_of: TypeOf) -> tuple[Action, ...]:
    asked = AskedSettings(
        set_flag=_lines(typed, "set_flag"),
        unset_flag=_lines(typed, "unset_flag"),
        set_env=_lines(typed, "set_env"),
        scale=typed.scale,
        concurrency=typed.concurrency,
        resources=typed.resources,
        model=typed.model,
        accelerator=typed.accelerator,
        instance_type=typed.instance_type,
    )
    return actions_of(asked, shape_of=shape_of, type_of=type_of)


def _lines(typed: Typed, field: str) -> tuple[str, ...]:
    found = tuple(line.strip() for line in getattr(typed, field).splitlines() if line.strip())
    if len(found) > LINES:
        raise SettingNotRead(f"more than {LINES} settings at once", "ask in two requests", field=field)
    return found


def _lifecycle(typed: Typed, live: Live | None) -> tuple[Action, ...]:
    if not typed.lifecycle:
        raise SettingNotRead("nothing is asked for", "choose one", field="lifecycle")
    if typed.lifecycle == RESTART:
        return (Restart(),)
    scale = typed.scale if typed.lifecycle == LifecycleOperation.START else ""
    if typed.lifecycle == LifecycleOperation.START and not scale:
        scale = _resumes_with(live)
    return actions_of(AskedSettings(lifecycle=typed.lifecycle, scale=scale, confirmed=typed.confirmed))


def _resumes_with(live: Live | None) -> str:
    if live is None:
        why = "how many instances it had is not known here"
        raise SettingNotRead(why, "say how many, as MIN:MAX", field="scale")
    return "{}:{}".format(*live.resumes_with) if live.resumes_with is not None else ""


def target_typed(typed: Typed) -> Target | None:
    """Return the state that the page showed.

    Raises:
        SettingNotRead: It was changed on its way.
    """
    if not typed.target:
        return None
    try:
        raw = typed.target.encode("utf-8", "replace")
        return Target.model_validate(read_object(raw, what="target", limit=TARGET_LIMIT, hint="open the page again"))
    except (InputRejected, ValidationError) as error:
        raise SettingNotRead("the page's own fields were changed", "open the page again") from error


def wrong_of(error: SreError, actions: tuple[Action, ...], service: str, policy: Policy) -> dict[str, tuple[str, ...]]:
    """Return what is wrong, by field; under the empty name what belongs to no field.

    Args:
        error: Why it was not taken.
        actions: What was asked for, as far as it could be read.
        service: Of which service.
        policy: Which values no approval can allow is said beside each of them.
    """
    if isinstance(error, SettingNotRead):
        return {error.field: (f"{error.why.rstrip('.')}; {error.hint}",)}
    if isinstance(error, NothingToChange):
        return {"": (f"nothing to change: {error.why}",)}
    if isinstance(error, AlreadyOpen):
        return {"supersede": (f"{error.why}. You can let the request take its place below.",)}
    found: dict[str, tuple[str, ...]] = {}
    for action, why in zip(actions, policy.objections(actions, service), strict=True):
        if why:
            field = _field_of(action, listed=service in policy.lifecycle)
            found[field] = (*found.get(field, ()), why)
    if found:
        return found | ({"": (error.hint,)} if LIFECYCLE in found else {})
    return {"": (f"{error.why.rstrip('.')}. {error.hint[:1].upper()}{error.hint[1:]}.",)}


def _field_of(action: Action, *, listed: bool) -> str:
    if isinstance(action, SetFlag):
        return "unset_flag" if action.value is None else "set_flag"
    if isinstance(action, Lifecycle):
        last = {LifecycleOperation.DELETE: "confirmed", LifecycleOperation.START: "scale"}
        return last.get(action.operation, LIFECYCLE) if listed else LIFECYCLE
    return _FIELD_OF.get(action.kind, "")


def operations_of(service: Service, live: Live | None, policy: Policy) -> tuple[Operation, ...]:
    """Return what may be asked for of the service as a whole, and what follows from each."""
    stopped = live.config.max_instances == 0 if live is not None else None
    found = [Operation(name=RESTART, label="Restart", says="The same configuration is started again.")]
    if stopped:
        found = []
    if service.name not in policy.lifecycle:
        return tuple(found)
    if stopped is not False:
        found.append(Operation(name="start", label="Start", says="The instances from before the stop serve again."))
    if not stopped:
        found.append(Operation(name="stop", label="Stop", says=_ends(service, LifecycleOperation.STOP)))
    gone = _ends(service, LifecycleOperation.DELETE)
    return (*found, Operation(name="delete", label="Delete", says=f"{gone} It cannot be undone."))


def _ends(service: Service, operation: LifecycleOperation) -> str:
    said = stops_answering(service.name, (Lifecycle(operation=operation),))
    return f"{said}."


def commands_of(service: Service, live: Live | None, policy: Policy) -> tuple[str, ...]:
    """Return the commands for a person where policy does not let the agent start, stop or delete the service."""
    if service.name in policy.lifecycle:
        return ()
    stopped = live is not None and live.config.max_instances == 0
    first = LifecycleOperation.START if stopped else LifecycleOperation.STOP
    wanted = (first, LifecycleOperation.DELETE)
    return tuple(c for operation in wanted for c in lifecycle_commands(service, (Lifecycle(operation=operation),)))
