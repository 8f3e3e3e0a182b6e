"""Takes secrets out of what is shown, sent or stored, by the bundled rules, which are read once per process."""

from functools import cache, lru_cache
from typing import Final

from agent.catalogue.load_secrets import load_secrets
from agent.core.redaction.redacted_json import body_without_secrets
from agent.core.redaction.redactor import Redactor

MEMO_TEXTS: Final = 256
"""Texts without a secret that are remembered: a storm repeats one line."""

MEMO_CHARS: Final = 2048
"""Longer texts are read each time, so that the memory is bounded."""


@cache
def redactor() -> Redactor:
    """Return the compiled redactor; built once per process."""
    return Redactor(load_secrets())


def redact(text: str) -> str:
    """Take the secrets out of a text.

    The last short texts in which there was nothing to take out are remembered; one with a secret never is.
    """
    if len(text) > MEMO_CHARS:
        return redactor().redact(text).text
    try:
        return _harmless(text)
    except _SecretFound as found:
        return found.redacted


class _SecretFound(Exception):
    """There was something to take out; raised, because what raises is not remembered. It never leaves this module."""

    def __init__(self, redacted: str) -> None:
        super().__init__("there was something to take out")
        self.redacted = redacted


@lru_cache(maxsize=MEMO_TEXTS)
def _harmless(text: str) -> str:
    redacted = redactor().redact(text).text
    if redacted != text:
        raise _SecretFound(redacted)
    return text


def hide(body: str) -> str:
    """Take the secrets out of a JSON body."""
    return body_without_secrets(body, redact)
