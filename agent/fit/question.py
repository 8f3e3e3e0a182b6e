"""One question "does it fit", read from a command line or a row of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agent.errors import InputRejected
from agent.fit.flags.flags import Flags, parse_flags
from agent.fit.needs import Needs

ARGUMENTS = {
    "model": "Hugging Face id, path, or a name added with `sre-agent models add`",
    "accelerator": "accelerator, such as nvidia-l4, tpu-v6e or cpu",
    "count": "number of devices (default: as many as the flags need)",
    "flags": "vLLM flags as one shell-quoted string",
    "vllm": "vLLM version (default: the newest known)",
    "need_context": "context length in tokens that one request needs",
    "need_users": "number of concurrent requests with that context length",
}
"""What a question may say, for whoever offers to ask one: the command line, tools of AI clients."""

KEYS = ("id", *ARGUMENTS)
_HINT = 'A row looks like {"id":"a","model":"google/gemma-4-31B-it","accelerator":"nvidia-l4","count":1,"flags":""}'
_MOST_DEVICES = 65536


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A model, an accelerator and flags; names are not looked up yet.

    Attributes:
        count: Devices present; what the flags need when not given.
        flags: Without the model that they may name; it is compared with ``model``.
        vllm: Version text, None for the newest known.
        notes: What was taken for granted while the row was read.
    """

    model: str
    accelerator: str
    count: int
    flags: Flags
    vllm: str | None
    needs: Needs
    notes: tuple[str, ...] = ()


def question_from(row: Mapping[str, Any]) -> Question:
    """Read one question; unknown keys are ignored, numbers may be text.

    Args:
        row: Keys of ``KEYS``; ``model`` and ``accelerator`` are needed.

    Raises:
        InputRejected: If a key is missing, of the wrong type or out of range, or the flags do not parse or serve
            another model than the one that is asked about.
    """
    flags = row.get("flags") or ""
    if not isinstance(flags, (str, list)) or (isinstance(flags, list) and not all(isinstance(w, str) for w in flags)):
        raise InputRejected(f"flags {flags!r} were not read", why="they are not text", hint=_HINT)
    parsed = parse_flags(flags)
    asked = _whole(row, "count")
    count = parsed.devices if asked is None else asked
    if not 1 <= count <= _MOST_DEVICES:
        raise InputRejected(
            f"count is {count}", why="a model needs at least one device", hint="give a count of 1 or more"
        )
    context, users = _whole(row, "need_context"), _whole(row, "need_users")
    for name, value in (("need_context", context), ("need_users", users)):
        if value is not None and value < 1:
            raise InputRejected(f"{name} is {value}", why="it must be 1 or more", hint="leave it out or raise it")
    version = row.get("vllm")
    if version is not None and not isinstance(version, (str, int, float)):
        raise InputRejected(f"vllm {version!r} was not read", why="it is not a version", hint=_HINT)
    model = _text(row, "model")
    return Question(
        model=model,
        accelerator=_text(row, "accelerator"),
        count=count,
        flags=replace(parsed, model=None),
        vllm=None if version is None or not str(version).strip() else str(version),
        needs=Needs(context_tokens=context, users=users or 1),
        notes=(*_served(model, parsed.model), *_unused(count, parsed.devices)),
    )


def _unused(count: int, used: int) -> tuple[str, ...]:
    """That devices stay empty: more of them do not make a server larger whose flags do not split it."""
    if count <= used:
        return ()
    return (f"{count - used} of {count} devices are not used: the flags split the server over {used}",)


def _served(model: str, served: str | None) -> tuple[str, ...]:
    """A path says nothing of what lies there, so the question's model is believed; another name contradicts it."""
    if served is None or served.rstrip("/").casefold() == model.rstrip("/").casefold():
        return ()
    if served.startswith(("/", ".", "~")) or "://" in served or model.startswith(("/", ".", "~")) or "://" in model:
        return (f"the flags serve {served}: taken to be {model}",)
    raise InputRejected(
        f"the flags serve {served!r}, the question is about {model!r}",
        why="an answer about one of them does not hold for the other",
        hint=f"ask with --model {served}, or take the model out of the flags",
    )


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InputRejected(f"{key} {value!r} was not read", why="a name is needed", hint=_HINT)
    return value.strip()


def _whole(row: Mapping[str, Any], key: str) -> int | None:
    value = row.get(key)
    if value is None:
        return None
    whole = not isinstance(value, bool) and (not isinstance(value, float) or value.is_integer())
    try:
        number = int(value) if whole else None
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None:
        raise InputRejected(f"{key} {value!r} was not read", why="it is not a whole number", hint=_HINT)
    return number
