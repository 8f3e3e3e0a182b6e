"""What a person types for a change, as typed actions: one meaning for each word, and no two values for one setting."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from pydantic import ValidationError

from agent.core.change.request import MOST_ACTIONS
from agent.core.plan.action import (
    Action,
    Lifecycle,
    LifecycleOperation,
    Restart,
    SetAccelerator,
    SetConcurrency,
    SetEnv,
    SetFlag,
    SetInstanceType,
    SetModel,
    SetResources,
    SetScaling,
    SetTerminationGrace,
)
from agent.core.value import Value
from agent.errors import InputRejected

ShapeOf = Callable[[str], tuple[float, int] | None]
"""The CPUs and MiB that are usual for an accelerator; None where nobody knows."""

TypeOf = Callable[[str], SetInstanceType | None]
"""What a type of machine has; None where nobody knows."""

REDACTED: Final = "[redacted:"
"""How what stands in place of a secret begins; see :class:`agent.core.redaction.redactor.Redactor`."""

MOST_REQUESTS: Final = 1000  # of one instance at once
MOST_GRACE_S: Final = 86_400
MIB: Final = {"mi": 1, "mib": 1, "gi": 1024, "gib": 1024, "": 1}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_PAIR = re.compile(r"(\d{1,4}):(\d{1,4})")
_RESOURCES = re.compile(r"(\d{1,3}(?:\.\d{1,3})?):(\d{1,7})([A-Za-z]{0,3})")
_LIFECYCLES = (LifecycleOperation.START, LifecycleOperation.STOP, LifecycleOperation.DELETE)


class AskedSettings(Value):
    """The words of one request, as a command line or a form has them.

    Attributes:
        set_flag: ``NAME=VALUE`` each, or ``NAME`` of a switch.
        unset_flag: Names of flags to remove.
        set_env: ``NAME=VALUE`` each.
        scale: ``MIN:MAX`` instances.
        concurrency: Requests that one instance may hold at once.
        resources: ``CPU:MEMORY``, the memory in MiB or as ``16Gi``.
        grace: Seconds that an instance has to finish when it is asked to end.
        instance_type: A type of machine, such as ``g6.2xlarge``.
        lifecycle: ``start``, ``stop``, ``delete`` or empty.
        confirmed: The name of the service as the person typed it, for a deletion.
    """

    set_flag: tuple[str, ...] = ()
    unset_flag: tuple[str, ...] = ()
    set_env: tuple[str, ...] = ()
    scale: str = ""
    concurrency: str = ""
    resources: str = ""
    grace: str = ""
    model: str = ""
    accelerator: str = ""
    instance_type: str = ""
    restart: bool = False
    lifecycle: str = ""
    confirmed: str = ""


class SettingNotRead(InputRejected):
    """A word of a request cannot be read, or two contradict each other; ``field`` names its place in `AskedSettings`.

    Attributes:
        field: Empty where it is about all of them together.
    """

    def __init__(self, why: str, hint: str, *, field: str = "") -> None:
        super().__init__("the change was not understood", why=why, hint=hint)
        self.field = field


def actions_of(
    asked: AskedSettings, *, shape_of: ShapeOf = lambda _: None, type_of: TypeOf = lambda _: None
) -> tuple[Action, ...]:
    """Return what is asked for as typed actions, in a fixed order.

    Args:
        asked: The words.
        shape_of: CPU and memory for an accelerator that is named without them.
        type_of: What a type of machine has.

    Raises:
        SettingNotRead: A word cannot be read, two say different things of one setting, nothing is asked for, or more
            than one request may hold.
    """
    found = (_typed(asked, type_of),) if asked.instance_type else tuple(_actions(asked, shape_of))
    if not found:
        raise SettingNotRead("nothing is asked for", "name at least one change; see: sre-agent change --help")
    if len(found) > MOST_ACTIONS:
        raise SettingNotRead(
            f"{len(found)} changes are asked for at once, and a request holds {MOST_ACTIONS} at most",
            "ask in two requests",
        )
    return found


def check_one_value_each(actions: tuple[Action, ...]) -> None:
    """Refuse typed actions of which two say different things of one setting; a program may send such.

    Raises:
        SettingNotRead: Two do.
    """
    said: dict[tuple[str, str], Action] = {}
    for action in actions:
        name = action.name if isinstance(action, SetFlag | SetEnv) else ""
        setting = (action.kind, name.replace("_", "-") if isinstance(action, SetFlag) else name)
        if said.setdefault(setting, action) != action:
            what = " ".join(filter(None, setting))
            raise SettingNotRead(f"{what} has two values", "give each setting once", field=action.kind)


def _actions(asked: AskedSettings, shape_of: ShapeOf) -> Iterator[Action]:
    if asked.lifecycle:
        yield _lifecycle(asked)
        return
    if asked.accelerator:
        yield _accelerator(asked, shape_of)
    if asked.model:
        yield SetModel(model=asked.model)
    yield from _flags(asked)
    yield from _variables(asked)
    if asked.scale:
        low, high = _pair(asked.scale)
        yield SetScaling(min_instances=low, max_instances=high)
    if asked.concurrency:
        yield SetConcurrency(concurrency=_requests(asked.concurrency))
    if asked.resources and not asked.accelerator:
        cpu, memory_mib = _resources(asked.resources)
        yield SetResources(cpu=cpu, memory_mib=memory_mib)
    if asked.grace:
        yield SetTerminationGrace(seconds=_grace(asked.grace))
    if asked.restart:
        yield Restart()


def _flags(asked: AskedSettings) -> Iterator[SetFlag]:
    given: dict[str, str | None] = {}
    for word in asked.set_flag:
        name, _, value = word.partition("=")
        _once(given, _flag_name(name, "set_flag"), value, "set_flag")
    for name in asked.unset_flag:
        _once(given, _flag_name(name, "unset_flag"), None, "unset_flag")
    for name, said in given.items():
        yield SetFlag(name=name, value=said)


def _variables(asked: AskedSettings) -> Iterator[SetEnv]:
    given: dict[str, str | None] = {}
    for word in asked.set_env:
        name, equals, value = word.partition("=")
        if not equals or _NAME.fullmatch(name) is None:
            raise SettingNotRead(f"{word[:80]!r} is no NAME=VALUE", "write --set-env NAME=VALUE", field="set_env")
        _once(given, name, value, "set_env")
    for name, said in given.items():
        yield SetEnv(name=name, value=said)


def _once(given: dict[str, str | None], name: str, value: str | None, field: str) -> None:
    kind = "environment variable " if field == "set_env" else "flag --"
    if REDACTED in (value or ""):
        why = f"the value of {kind}{name} is what stands in place of a secret, not the secret"
        raise SettingNotRead(why, "keep secrets with the platform, and leave this out", field=field)
    if name in given and given[name] != value:
        values = " and ".join("none" if v is None else repr(v[:80]) for v in (given[name], value))
        raise SettingNotRead(f"{kind}{name} has two values, {values}", "give each setting once", field=field)
    given[name] = value


def _flag_name(given: str, field: str) -> str:
    name = given.removeprefix("--").replace("_", "-")
    if _NAME.fullmatch(name) is None:
        hint = "write --set-flag NAME=VALUE, such as max-model-len=16384"
        raise SettingNotRead(f"{given[:80]!r} is no name of a flag", hint, field=field)
    return name


def _accelerator(asked: AskedSettings, shape_of: ShapeOf) -> SetAccelerator:
    shape = _resources(asked.resources) if asked.resources else shape_of(asked.accelerator)
    if shape is None:
        raise SettingNotRead(
            f"no usual CPU and memory are known for {asked.accelerator[:80]!r}",
            "check the name, or say them: --resources CPU:MEMORY",
            field="accelerator",
        )
    return SetAccelerator(accelerator=asked.accelerator, cpu=shape[0], memory_mib=shape[1])


def _typed(asked: AskedSettings, type_of: TypeOf) -> SetInstanceType:
    """The machine is stopped for it, so it stands alone: what fails is then known to be the machine."""
    if asked.model_copy(update={"instance_type": ""}) != AskedSettings():
        why = "another instance type stands alone, without another change"
        raise SettingNotRead(why, "ask for the other change afterwards", field="instance_type")
    found = type_of(asked.instance_type)
    if found is None:
        raise SettingNotRead(
            f"what {asked.instance_type[:80]!r} has is not known here",
            "check the name, and that the service runs on EC2; prices.toml lists the types: sre-agent advise SERVICE",
            field="instance_type",
        )
    return found


def _lifecycle(asked: AskedSettings) -> Lifecycle:
    operation = next((known for known in _LIFECYCLES if known.value == asked.lifecycle), None)
    if operation is None:
        hint = f"use one of {', '.join(_LIFECYCLES)}"
        raise SettingNotRead(f"{asked.lifecycle[:80]!r} is no lifecycle", hint, field="lifecycle")
    scaled = bool(asked.scale) and operation is LifecycleOperation.START
    others = asked.model_copy(update={"lifecycle": "", "confirmed": "", "scale": "" if scaled else asked.scale})
    if others != AskedSettings():
        why = f"a {operation} stands alone, without another change"
        raise SettingNotRead(why, "ask for the other change afterwards", field="lifecycle")
    low, high = _pair(asked.scale) if scaled else (0, 1)
    try:
        return Lifecycle(operation=operation, min_instances=low, max_instances=high, confirmed=asked.confirmed)
    except ValidationError as error:
        says = "; ".join(e["msg"].removeprefix("Value error, ") for e in error.errors())
        raise SettingNotRead(says, "write --scale MIN:MAX, such as 0:2", field="scale") from error


def _pair(text: str) -> tuple[int, int]:
    match = _PAIR.fullmatch(text)
    if match is None:
        why = f"--scale {text[:80]!r} is no MIN:MAX"
        raise SettingNotRead(why, "write two numbers, such as --scale 1:2", field="scale")
    return int(match[1]), int(match[2])


def _resources(text: str) -> tuple[float, int]:
    match = _RESOURCES.fullmatch(text)
    factor = MIB.get(match[3].lower()) if match is not None else None
    if match is None or factor is None:
        why = f"--resources {text[:80]!r} is no CPU:MEMORY"
        raise SettingNotRead(why, "write such as --resources 8:32Gi, or 8:32768 (MiB)", field="resources")
    return float(match[1]), int(match[2]) * factor


def _requests(text: str) -> int:
    if not text.isdecimal() or len(text) > 6 or not 1 <= int(text) <= MOST_REQUESTS:
        why = f"--concurrency {text[:80]!r} is no whole number from 1 to {MOST_REQUESTS}"
        raise SettingNotRead(why, "write such as --concurrency 8", field="concurrency")
    return int(text)


def _grace(text: str) -> int:
    if not text.isdecimal() or len(text) > 5 or int(text) > MOST_GRACE_S:
        why = f"--grace {text[:80]!r} is no whole number of seconds up to {MOST_GRACE_S}"
        raise SettingNotRead(why, "write such as --grace 120", field="grace")
    return int(text)
