"""A model's rewording of sentences of ours: used only where it has no figure, name, time or word of its own."""

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
_PLAIN: Final = _JOINING | _words(
    "about again all also although an any because been being both came did do does during each either every failed "
    "failing fails finally first gave going had happened have he here however if it its itself just kept later left "
    "made make meanwhile next now once one only other out own put said same second she since so some started still "
    "stopped stood such than that their them these they this those though through thus together too took tried under "
    "up what whether who whose why will would yet incident trouble problem service server model change plan began "
    "ended lasted"
)
"""Words with which nothing is stated: they join what the original states. No negation is among them."""
_STEM: Final = 5  # letters that make two words one: recover, recovery; loading, loaded


class _Answer(Value):
    summary: str = Field(min_length=1, max_length=4000)


def read_rewording(text: str, *, finished: bool, original: str, is_over: bool) -> str:
    """Read a model's answer; nothing is repaired.

    Args:
        text: The raw text of the reply.
        finished: Whether the model ended by itself.
        original: What was to be worded anew.
        is_over: Whether the trouble ended in health; only then may it have a word of an end that the original lacks.

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
    added |= _new_words(said, original) - (_ENDS if is_over else frozenset())
    if added:
        raise _unusable(f"it states {max(added, key=lambda one: (len(one), one))[:60]!r}, which the original does not")
    return said


def _new_words(said: str, original: str) -> frozenset[str]:
    """Return the words that are not the original's in any form, and do more than join those."""
    own = _words(original)
    stems = {word[:_STEM] for word in own if len(word) >= _STEM}
    new = _words(said) - own - _PLAIN
    return frozenset(word for word in new if len(word) < _STEM or word[:_STEM] not in stems)


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
