"""A model's rewording of sentences of ours: used only where it states no figure, name, time or end of its own."""

import re
from typing import Final

from pydantic import Field, ValidationError

from agent.core.text.safe_text import plain
from agent.core.value import Value
from agent.errors import InputRejected, ModelMisbehaved
from agent.strict_json import read_object

REWORDING_SCHEMA: Final = (
    '{"type":"object","properties":{"summary":{"type":"string","maxLength":2000}},'
    '"required":["summary"],"additionalProperties":false}'
)
_LIMIT: Final = 16_384  # bytes of an answer
_LONGER: Final = 1.5  # times the original, at most
_EDGES: Final = ".,:;!?'\"()‘’“”"
_FIGURE: Final = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)*")
_NAME: Final = re.compile(r"[_/@=\\]|\w[.:]\w|^--?\w|[a-z][A-Z]")


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]+", text.lower()))


_JOINING: Final = _words(
    "a after and are as at before but by for from had has in into is of on or over the then to until was were when "
    "where which while with"
)
"""Words that may follow a figure and are no unit of it."""
_IN_WORDS: Final = _words(
    "two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty ninety "
    "hundred hundreds thousand million half quarter dozen dozens twice double triple once several"
)
_ENDS: Final = _words(
    "fixed resolved recovered restored solved repaired mended healthy successful successfully helped works worked"
)


class _Answer(Value):
    summary: str = Field(min_length=1, max_length=4000)


def read_rewording(text: str, *, finished: bool, original: str, is_over: bool) -> str:
    """Read a model's answer; nothing is repaired.

    Args:
        text: The raw text of the reply.
        finished: Whether the model ended by itself.
        original: What was to be worded anew.
        is_over: Whether the trouble ended in health; if not, no word of an end that the original lacks is let in.

    Raises:
        ModelMisbehaved: Cut off, no JSON object by the schema, much longer, or it states what the original does not.
    """
    if not finished:
        raise _unusable("it was cut off")
    try:
        raw = read_object(text.encode("utf-8", "surrogatepass"), what="model's answer", limit=_LIMIT)
        said = " ".join(plain(_Answer.model_validate(raw).summary).split())
    except InputRejected as error:
        raise _unusable(error.why) from error
    except ValidationError as error:
        raise _unusable("it is not the one text that was asked for") from error
    if not said or len(said) > len(original) * _LONGER:
        raise _unusable("it is empty, or much longer than the original")
    added = stated(said) - stated(" ".join(plain(original).split()))
    if not is_over:
        added |= (_words(said) & _ENDS) - _words(original)
    if added:
        raise _unusable(f"it states {max(added, key=lambda one: (len(one), one))[:60]!r}, which the original does not")
    return said


def stated(text: str) -> frozenset[str]:
    """Return what a text states that can be checked letter by letter: figures and their units, names, times."""
    words = text.split()
    found = set()
    for word, following in zip(words, [*words[1:], ""], strict=True):
        token, unit = word.strip(_EDGES), following.strip(_EDGES)
        if _FIGURE.fullmatch(token):
            found.add(token)
            if unit and word.endswith(token) and unit not in _JOINING:
                found.add(f"{token} {unit}")
        elif _NAME.search(token) or any(sign.isnumeric() for sign in token):
            found.add(token)
    return frozenset(found | (_words(text) & _IN_WORDS))


def _unusable(why: str) -> ModelMisbehaved:
    return ModelMisbehaved(
        "the model's summary was not used", why=why, hint="no action needed: the summary of the record stands"
    )
