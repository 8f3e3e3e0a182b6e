"""A plan in one line, made from its typed actions and its exact difference: what is done, from what to what."""

import re
from collections.abc import Iterator

from agent.core.plan.action import Difference, ForPerson, Restart, SetLivenessProbe, SetStartupProbe
from agent.core.plan.action import LifecycleOperation as Operation
from agent.core.plan.lifecycle import lifecycle_of
from agent.core.plan.plan import Plan
from agent.core.text.safe_text import shortened

TITLE_CHARS = 200
_FIRST_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|\n")
_PROBES = ("startup_probe ", "liveness_probe ")
_NAMES = {
    "max_instances": "the most instances",
    "min_instances": "the fewest instances",
    "concurrency": "the requests per instance",
    "memory_mib": "memory (MiB)",
    "cpu": "CPU",
    "instance_type": "the instance type",
    "termination_grace_s": "the time to finish (s)",
}


def plan_title(plan: Plan) -> str:
    """Return such as ``Raise --max-model-len from 16384 to 17408``; of a person's task the task itself."""
    parts = list(dict.fromkeys(_parts(plan)))
    if not parts:
        return "No setting changes"
    return shortened("; ".join((parts[0], *(_small(part) for part in parts[1:]))), TITLE_CHARS)


def _parts(plan: Plan) -> Iterator[str]:
    operation = lifecycle_of(plan.actions)
    if operation is not None:
        yield _lifecycle(plan, operation)
        return
    for action in plan.actions:
        if isinstance(action, ForPerson):
            yield _FIRST_SENTENCE.split(action.instruction, maxsplit=1)[0]
        elif isinstance(action, Restart):
            yield "Start the same configuration again"
        elif isinstance(action, SetStartupProbe):
            yield f"Allow {action.probe.budget_s:,} s for the start (startup probe)"
        elif isinstance(action, SetLivenessProbe):
            yield "Relax the liveness probe" if action.probe is not None else "Remove the liveness probe"
    for row in plan.difference:
        if not row.path.startswith(_PROBES):
            yield _row(row)


def _lifecycle(plan: Plan, operation: Operation) -> str:
    service, after = plan.target.service, {row.path: row.after for row in plan.difference}
    match operation:
        case Operation.CREATE:
            what = after.get("model") or after.get("flag --model") or after.get("image")
            return f"Create {service} on {after.get('accelerator') or 'CPU'}: {what}"
        case Operation.START:
            return f"Start {service}"
        case Operation.STOP:
            return f"Stop {service} (scale to zero)"
        case Operation.DELETE:
            return f"Delete {service}; this cannot be undone"


def _row(row: Difference) -> str:
    name = row.path.removeprefix("flag ").removeprefix("env ")
    name = _NAMES.get(name, name)
    if row.after is None:
        return f"Remove {name}"
    if row.before is None:
        return f"Turn on {name}" if row.after == "" else f"Set {name} to {row.after}"
    before, after = number_in(row.before), number_in(row.after)
    change = "Change" if before is None or after is None else "Raise" if after > before else "Lower"
    return f"{change} {name} from {row.before or 'on'} to {row.after or 'on'}"


def number_in(value: str) -> float | None:
    """Return the number that a setting's value is, or None."""
    try:
        return float(value)
    except ValueError:
        return None


def _small(text: str) -> str:
    return text[:1].lower() + text[1:]


def as_sentence(text: str) -> str:
    """Return a text with a capital where it begins with a plain word, and a full stop; names and flags are kept."""
    first = text.partition(" ")[0].rstrip(",;:")
    begun = text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text
    return begun if not begun or begun[-1] in ".!?…" else f"{begun}."
