"""The model's answer, read strictly: one JSON object by the schema, ids and class checked, or no answer at all."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationError

from agent.core.value import Value, canonical
from agent.errors import InputRejected, ModelMisbehaved
from agent.strict_json import read_object

ANSWER_LIMIT = 65_536  # bytes; a longer answer is none
PROSE_LIMIT = 400  # characters that a grammar lets through; a small model that repeats itself ends before its tokens do
ITEM_LIMIT = 120
_RULES_ALONE = "no action needed: the rule-based diagnosis stands"

Sentence = Annotated[str, StringConstraints(max_length=240)]
LineId = Annotated[str, StringConstraints(max_length=8)]


class LinesAround(Value):
    """More lines around one that was shown."""

    want: Literal["lines_around"]
    id: LineId


class EarlierLog(Value):
    """The log of the revision that served before."""

    want: Literal["earlier_log"]


class FitOf(Value):
    """What the arithmetic says of the present configuration with another context length or share."""

    want: Literal["fit"]
    max_model_len: int | None = Field(default=None, ge=1, le=10_000_000, strict=True)
    gpu_memory_utilization: float | None = Field(default=None, ge=0.05, le=1.0)


Request = Annotated[LinesAround | EarlierLog | FitOf, Field(discriminator="want")]


class ModelAnswer(Value):
    """What a model may say.

    Attributes:
        root_cause: Prose for people; never read by anything that acts.
        class_: A class of the catalogue, or ``unknown``.
        cited: Ids of lines that were shown.
        unknown: What is still unknown.
        more: Read-only requests of a closed list.
    """

    root_cause: str = Field(min_length=1, max_length=1200)
    class_: str = Field(alias="class", max_length=64)
    cited: tuple[LineId, ...] = Field(max_length=8)
    unknown: tuple[Sentence, ...] = Field(default=(), max_length=5)
    more: tuple[Request, ...] = Field(default=(), max_length=3)


def answer_schema(classes: Sequence[str], ids: Sequence[str], *, may_ask: bool) -> str:
    """Return the JSON schema of an answer, as JSON text.

    Args:
        classes: The names of the catalogue; ``unknown`` among them.
        ids: The lines that are shown.
        may_ask: Whether the model may ask for more evidence.
    """
    cited = {"type": "string", "enum": list(ids)} if ids else {"type": "string"}
    properties: dict[str, Any] = {
        "root_cause": {"type": "string", "maxLength": PROSE_LIMIT},
        "class": {"type": "string", "enum": list(classes)},
        "cited": {"type": "array", "items": cited, "maxItems": 8},
        "unknown": {"type": "array", "items": {"type": "string", "maxLength": ITEM_LIMIT}, "maxItems": 5},
    }
    if may_ask:
        properties["more"] = {"type": "array", "maxItems": 3, "items": {"anyOf": _requests(cited)}}
    return canonical_in_order(_object(properties))


def _requests(cited: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        _object({"want": {"const": "lines_around"}, "id": cited}),
        _object({"want": {"const": "earlier_log"}}),
        _object({"want": {"const": "fit"}, "max_model_len": {"type": "integer"}}),
        _object({"want": {"const": "fit"}, "gpu_memory_utilization": {"type": "number"}}),
    ]


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def canonical_in_order(schema: Mapping[str, Any]) -> str:
    """Return the schema as JSON text; a grammar follows the order of its properties, so it is kept."""
    parts = (f"{canonical(name).decode()}:{_ordered(value)}" for name, value in schema.items())
    return "{" + ",".join(parts) + "}"


def _ordered(value: Any) -> str:
    if isinstance(value, Mapping):
        return canonical_in_order(value)
    if isinstance(value, list):
        return "[" + ",".join(_ordered(item) for item in value) + "]"
    return canonical(value).decode()


def read_answer(text: str, *, finished: bool, classes: Sequence[str], ids: Sequence[str], may_ask: bool) -> ModelAnswer:
    """Read an answer; nothing is repaired.

    Args:
        text: The raw text of the reply.
        finished: Whether the model ended by itself.
        classes: The names that count.
        ids: The lines that were really shown.
        may_ask: Whether requests for more were allowed.

    Raises:
        ModelMisbehaved: Cut off, not one JSON object by the schema, a class or line that does not exist, or a class
            without a line to prove it.
    """
    if not finished:
        raise _unusable("it was cut off")
    try:
        raw = read_object(text.encode("utf-8", "surrogatepass"), what="model's answer", limit=ANSWER_LIMIT)
        answer = ModelAnswer.model_validate(raw)
    except InputRejected as error:
        raise _unusable(error.why) from error
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])[:80]
        raise _unusable(f"{where}: {first['msg']}") from error
    _check(answer, classes, ids, may_ask=may_ask)
    return answer


def _check(answer: ModelAnswer, classes: Sequence[str], ids: Sequence[str], *, may_ask: bool) -> None:
    if answer.class_ not in classes:
        raise _unusable("the class is not in the catalogue")
    asked = {request.id for request in answer.more if isinstance(request, LinesAround)}
    if not {*answer.cited, *asked} <= set(ids):
        raise _unusable("it cites a line that was not shown")
    if answer.class_ != "unknown" and not answer.cited:
        raise _unusable("it names a class and cites no line for it")
    if answer.more and not may_ask:
        raise _unusable("it asks for more though it may not")


def _unusable(why: str) -> ModelMisbehaved:
    return ModelMisbehaved("the model's answer was not used", why=why, hint=_RULES_ALONE)
