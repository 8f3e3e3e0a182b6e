"""What a person types for a change, as typed actions: one meaning for each word, and no two values for one setting."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from pydantic import ValidationError

from agent.core.plan.action import (
    Action,
    Lifecycle,
    LifecycleOperation,
    Restart,
    SetAccelerator,
    SetConcurrency,
    SetEnv,
    SetFlag,
    SetModel,
    SetResources,
    SetScaling,
)
from agent.core.value import Value
from agent.errors import InputRejected

ShapeOf = Callable[[str], tuple[float, int] | None]
"""The CPUs and MiB that are usual for an accelerator; None where nobody knows."""

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
        lifecycle: ``start``, ``stop``, ``delete`` or empty.
        confirmed: The name of the service as the person typed it, for a deletion.
    """

    set_flag: tuple[str, ...] = ()
    unset_flag: tuple[str, ...] = ()
    set_env: tuple[str, ...] = ()
    scale: str = ""
    concurrency: str = ""
    resources: str = ""
    model: str = ""
    accelerator: str = ""
    restart: bool = False
    lifecycle: str = ""
    confirmed: str = ""


def actions_of(asked: AskedSettings, *, shape_of: ShapeOf = lambda _: None) -> tuple[Action, ...]:
    """Return what is asked for as typed actions, in a fixed order.

    Args:
        asked: The words.
        shape_of: CPU and memory for an accelerator that is named without them.

    Raises:
        InputRejected: A word cannot be read, two say different things of one setting, or nothing is asked for.
    """
    try:
        found = tuple(_actions(asked, shape_of))
    except ValidationError as error:
        says = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise _unread(says, "see: sre-agent change --help") from error
    if not found:
        raise _unread("nothing is asked for", "name at least one change; see: sre-agent change --help")
    return found


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
        yield SetConcurrency(concurrency=_whole("--concurrency", asked.concurrency))
    if asked.resources and not asked.accelerator:
        cpu, memory_mib = _resources(asked.resources)
        yield SetResources(cpu=cpu, memory_mib=memory_mib)
    if asked.restart:
        yield Restart()


def _flags(asked: AskedSettings) -> Iterator[SetFlag]:
    given: dict[str, str | None] = {}
    for word in asked.set_flag:
        name, _, value = word.partition("=")
        _once(given, _flag_name(name), value, "flag --")
    for name in asked.unset_flag:
        _once(given, _flag_name(name), None, "flag --")
    for name, said in given.items():
        yield SetFlag(name=name, value=said)


def _variables(asked: AskedSettings) -> Iterator[SetEnv]:
    given: dict[str, str | None] = {}
    for word in asked.set_env:
        name, equals, value = word.partition("=")
        if not equals or _NAME.fullmatch(name) is None:
            raise _unread(f"{word[:80]!r} is no NAME=VALUE", "write --set-env NAME=VALUE")
        _once(given, name, value, "environment variable ")
    for name, said in given.items():
        yield SetEnv(name=name, value=said)


def _once(given: dict[str, str | None], name: str, value: str | None, kind: str) -> None:
    if name in given and given[name] != value:
        values = " and ".join("none" if v is None else repr(v[:80]) for v in (given[name], value))
        raise _unread(f"{kind}{name} has two values, {values}", "give each setting once")
    given[name] = value


def _flag_name(given: str) -> str:
    name = given.removeprefix("--").replace("_", "-")
    if _NAME.fullmatch(name) is None:
        raise _unread(
            f"{given[:80]!r} is no name of a flag", "write --set-flag NAME=VALUE, such as max-model-len=16384"
        )
    return name


def _accelerator(asked: AskedSettings, shape_of: ShapeOf) -> SetAccelerator:
    shape = _resources(asked.resources) if asked.resources else shape_of(asked.accelerator)
    if shape is None:
        raise _unread(
            f"no usual CPU and memory are known for {asked.accelerator[:80]!r}",
            "check the name, or say them: --resources CPU:MEMORY",
        )
    return SetAccelerator(accelerator=asked.accelerator, cpu=shape[0], memory_mib=shape[1])


def _lifecycle(asked: AskedSettings) -> Lifecycle:
    operation = next((known for known in _LIFECYCLES if known.value == asked.lifecycle), None)
    if operation is None:
        raise _unread(f"{asked.lifecycle[:80]!r} is no lifecycle", f"use one of {', '.join(_LIFECYCLES)}")
    scaled = bool(asked.scale) and operation is LifecycleOperation.START
    others = asked.model_copy(update={"lifecycle": "", "confirmed": "", "scale": "" if scaled else asked.scale})
    if others != AskedSettings():
        raise _unread(f"a {operation} stands alone, without another change", "ask for the other change afterwards")
    low, high = _pair(asked.scale) if scaled else (0, 1)
    return Lifecycle(operation=operation, min_instances=low, max_instances=high, confirmed=asked.confirmed)


def _pair(text: str) -> tuple[int, int]:
    match = _PAIR.fullmatch(text)
    if match is None:
        raise _unread(f"--scale {text[:80]!r} is no MIN:MAX", "write two numbers, such as --scale 1:2")
    return int(match[1]), int(match[2])


def _resources(text: str) -> tuple[float, int]:
    match = _RESOURCES.fullmatch(text)
    factor = MIB.get(match[3].lower()) if match is not None else None
    if match is None or factor is None:
        raise _unread(
            f"--resources {text[:80]!r} is no CPU:MEMORY", "write such as --resources 8:32Gi, or 8:32768 (MiB)"
        )
    return float(match[1]), int(match[2]) * factor


def _whole(name: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 6:
        raise _unread(f"{name} {text[:80]!r} is no whole number", f"write such as {name} 8")
    return int(text)


def _unread(why: str, hint: str) -> InputRejected:
    return InputRejected("the change was not understood", why=why, hint=hint)
