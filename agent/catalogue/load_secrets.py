"""Reads secrets.toml whole: token formats, makers' names and announcing words, or every mistake at once."""

import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import re2
from pydantic import BaseModel, ConfigDict, Field

from agent.catalogue.catalogue_file import Mistakes, read_table
from agent.core.redaction.rules import KIND_PATTERN, SecretRules, ServiceName, TokenFormat
from agent.core.redaction.scan import compiled

SECRETS_FILE = Path(__file__).with_name("secrets.toml")

_KIND = rf"^{KIND_PATTERN}$"
_WORD = r"^[\x21-\x7e ]+$"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Format(_Strict):
    kind: str = Field(pattern=_KIND, max_length=48)
    keywords: tuple[str, ...] = Field(default=(), strict=False)
    pattern: str = Field(min_length=3)
    edge: bool = True
    back: int = Field(default=64, ge=0, le=20_000)
    reach: int = Field(default=1024, ge=0, le=20_000)
    random: bool = False
    named: bool = False
    across: bool = True
    source: str = Field(pattern="^https://")
    basis: str = Field(pattern="^(documented|described)$")
    date: str


class _Service(_Strict):
    kind: str = Field(pattern=_KIND, max_length=48)
    words: tuple[str, ...] = Field(min_length=1, strict=False)
    least: int = Field(ge=12, le=256)
    hex: bool = False
    source: str = Field(pattern="^https://")


class _Services(_Strict):
    date: str
    basis: str = Field(pattern="^(documented|described)$")
    known: list[_Service]


class _Names(_Strict):
    strong: list[str] = Field(min_length=1)
    weak: list[str] = Field(min_length=1)


class _File(_Strict):
    rules: str
    names: _Names
    format: list[_Format] = Field(min_length=1)
    services: _Services


def load_secrets(path: Path = SECRETS_FILE) -> SecretRules:
    """Read and validate the rules of redaction.

    Args:
        path: The file; the one beside this module unless a test passes its own.

    Returns:
        Rules ready for a `Redactor`.

    Raises:
        SettingsRejected: The file is not TOML, or has mistakes: all are named.
    """
    return parse_secrets(read_table(path), name=path.name)


def parse_secrets(raw: Mapping[str, Any], *, name: str = "secrets.toml") -> SecretRules:
    """Turn parsed TOML into rules.

    Raises:
        SettingsRejected: Mistakes, all of them.
    """
    mistakes = Mistakes(name)
    with mistakes.of("rules"):
        file = _File.model_validate(raw)
        mistakes.found += _mistakes(file)
    mistakes.refuse()
    return SecretRules(
        dated=file.rules,
        formats=tuple(TokenFormat(**row.model_dump(exclude={"basis", "date"})) for row in file.format),
        services=tuple(ServiceName(**dict(row)) for row in file.services.known),
        strong=tuple(file.names.strong),
        weak=tuple(file.names.weak),
    )


def _mistakes(file: _File) -> list[str]:
    mistakes = [f"{where} is no date: {text!r}" for where, text in _dates(file) if not _is_date(text)]
    patterns = [(f"format {row.kind!r}", row.pattern) for row in file.format]
    patterns += [("names.strong", source) for source in file.names.strong]
    for where, source in patterns:
        try:
            compiled(source)
        except re2.error as error:
            mistakes.append(f"{where} has no RE2 pattern: {error}")
    words = [(row.kind, word) for row in file.format for word in row.keywords]
    words += [(row.kind, word) for row in file.services.known for word in row.words]
    words += [("names.weak", word) for word in file.names.weak]
    mistakes += [f"{kind}: keyword {word!r} is not lower-case ASCII" for kind, word in words if not _is_word(word)]
    kinds = [row.kind for row in file.services.known]
    mistakes += [f"service {kind!r} stands twice" for kind in sorted({each for each in kinds if kinds.count(each) > 1})]
    return mistakes


def _dates(file: _File) -> list[tuple[str, str]]:
    return [
        ("rules", file.rules),
        ("services.date", file.services.date),
        *((f"format {row.kind!r}", row.date) for row in file.format),
    ]


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_word(word: str) -> bool:
    return bool(re.fullmatch(_WORD, word)) and word == word.lower()
