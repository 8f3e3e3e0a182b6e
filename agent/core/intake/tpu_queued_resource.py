"""A TPU queued resource as the API shows it: its states reach no log, so the body itself is the event (facts 5.2)."""

from collections.abc import Mapping
from typing import Any

from agent.core.intake.ends import end_of
from agent.core.intake.json_fields import facts, first_time, missing, name, names, part, rows, text
from agent.core.intake.origin import TPU_VM, Ignored, Origin, Reading, signal
from agent.core.intake.signal import AskedBy, End, Signal, Source, log_key

SHAPE = "TPU queued resource"

_BAD = frozenset({"FAILED", "SUSPENDED", "SUSPENDING"})
_ENDED = frozenset({"SUSPENDED", "SUSPENDING"})  # a user gave it back, or the service took it (facts 5.2)


def is_queued_resource(body: Mapping[str, Any]) -> bool:
    """Whether a body is a TPU queued resource."""
    return "/queuedResources/" in text(body, "name") or ("tpu" in body and "queueingPolicy" in body)


def read_queued_resource(body: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
    """Return the signal of its state; the start-up script may hold secrets and stays out.

    The body has no time of its own state: the time of arrival counts, else that of its making.

    Raises:
        InputRejected: No name or no state.
    """
    whole, state = text(body, "name"), part(body, "state")
    value = text(state, "state")
    if not whole or not value:
        raise missing(SHAPE, "state" if whole else "name", state.get("state") if whole else body.get("name"))
    specs = [row for row in rows(part(body, "tpu"), "nodeSpec") if isinstance(row, Mapping)]
    node = next((found for row in specs if (found := name(row.get("nodeId")))), None)
    error = part(state, "failedData", "error")
    made = first_time(body.get("createTime"))
    return [
        signal(
            _origin(whole, node),
            reading,
            key=log_key(
                reading.run,
                log_name=whole,
                insert_id=f"{value}/{text(error, 'message')}",
                timestamp=made.isoformat() if made else "",
            ),
            source=Source.PLATFORM_LOG,
            at=reading.arrived() or made,
            said=_words(whole, value, state),
            instance=node,
            severity="ERROR" if value in _BAD else "INFO",
            end=_end(value, text(state, "stateInitiator")) if value in _ENDED else None,
            fields=facts(
                state=value,
                initiator=state.get("stateInitiator"),
                code=error.get("code"),
                accelerator_type=part(specs[0], "node").get("acceleratorType") if specs else None,
            ),
        )
    ]


def _end(value: str, initiator: str) -> End:
    return end_of(reason=value).with_(asked_by=AskedBy.OPERATOR if initiator == "USER" else None)


def _origin(whole: str, node: str | None) -> Origin:
    segments = whole.split("/")
    return Origin(
        shape=SHAPE,
        platform=TPU_VM,
        names=names(node, segments[-1]),
        project=segments[1] if len(segments) > 1 else "",
        location=segments[3] if len(segments) > 3 else "",
    )


def _words(whole: str, value: str, state: Mapping[str, Any]) -> str:
    said = f"TPU queued resource {whole.rpartition('/')[2]} is {value}"
    if words := text(part(state, "failedData", "error"), "message"):
        return f"{said}: {words}"
    by = text(state, "stateInitiator")
    return f"{said}, initiated by the {by.lower()}" if by and value in _BAD else said
