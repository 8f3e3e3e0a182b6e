"""Whether a value looks random, or like the names, numbers and paths that logs are full of."""

import re

LOOKED_AT = 256
"""Characters of a value that are judged; the rest cannot make it less random."""

_PLACEHOLDER = re.compile(
    r"[$%<{*].*|\.{3}|[x*•.#-]+|none|null|true|false|nil|undefined|unset|empty"
    r"|not[ _]?set|redacted|hidden|masked|secretstr|.*\*{3}.*"
    r"|(?:os|self|cls|args|config|settings|request|req|kwargs|env)\..*",
    re.IGNORECASE,
)
_FILL_IN = re.compile(r"[A-Z]+(?:_[A-Z]+)*")
_SHORT_HEX = re.compile(r"[0-9a-f]{7,16}")
_CHUNK = re.compile(r"[A-Za-z0-9]+")
_RUN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_HEX = re.compile(r"(?:0[xX])?[0-9a-fA-F]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_POD = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*-[bcdf-hj-np-tv-z0-9]{5,10}-[bcdf-hj-np-tv-z0-9]{5}")
_NUMBER_TYPE = re.compile(r"(?i)(?:nv|mx)?(?:fp|bf|u?int|float)(?:4|8|16|32|64)")
_DIGEST_LENGTHS = frozenset({32, 40, 64, 96, 128})


def looks_random(value: str, *, letters_per_run: float = 3.4) -> bool:
    """Say whether a value looks made by chance.

    Args:
        value: The bare value, without quotes.
        letters_per_run: Most letters per run of one kind that pass for chance. Words are long runs, chance makes short
            ones: 62 signs give 1.7 on average, 36 signs 2.5; names of classes have five and more.

    Returns:
        True if some part of at least seven letters and digits reads like neither word, number, identifier nor digest.
        Hexadecimal digests of the usual lengths, their first digits, UUIDs and Kubernetes pod names name things here.
        Not promised: a secret made of words ("correct-horse") is not told from a name.
    """
    head = value[:LOOKED_AT]
    if is_digest(head) or is_uuid(head) or _POD.fullmatch(head):
        return False
    return any(not _wordy(chunk, letters_per_run) for chunk in _CHUNK.findall(head))


def is_digest(value: str) -> bool:
    """Say whether a value is a number, an address or a checksum in hexadecimal."""
    return bool(_HEX.fullmatch(value)) and (value[:2] in {"0x", "0X"} or len(value) in _DIGEST_LENGTHS)


def is_placeholder(value: str) -> bool:
    """Say whether a value only says what to fill in, or that there is none."""
    return bool(_PLACEHOLDER.fullmatch(value))


def is_fill_in(value: str) -> bool:
    """Say whether a value is the name that a usage line shows for it: ``API_KEY``."""
    return len(value) < 32 and bool(_FILL_IN.fullmatch(value))


def is_uuid(value: str) -> bool:
    """Say whether a value is a UUID."""
    return bool(_UUID.fullmatch(value))


def _wordy(chunk: str, letters_per_run: float) -> bool:
    if len(chunk) < 7 or chunk.isdigit() or is_digest(chunk) or _SHORT_HEX.fullmatch(chunk):
        return True
    chunk = _NUMBER_TYPE.sub("Type", chunk)  # kFp8StaticTensorSym is a name, however short its runs
    runs = _RUN.findall(chunk)
    if len(runs) == 1:
        return len(chunk) < 10 or _vowels(chunk) >= 0.2
    return len(chunk) / len(runs) >= (letters_per_run if len(chunk) >= 10 else 2.3)


def _vowels(letters: str) -> float:
    return sum(letter in "aeiouyAEIOUY" for letter in letters) / len(letters)
