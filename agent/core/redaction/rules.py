"""The redactor's rules: token formats, vendors' names and the words that announce a secret."""

from dataclasses import dataclass

KIND_PATTERN = r"[a-z0-9]+(?:-[a-z0-9]+)*"
"""A kind as it stands in ``[redacted:KIND]``."""


@dataclass(frozen=True, kw_only=True)
class TokenFormat:
    """A value that gives itself away by its looks.

    Attributes:
        kind: What is shown in its place, matching `KIND_PATTERN`.
        keywords: Lower-case ASCII literals, one of which stands in every value; none: the pattern is its own sieve.
        pattern: RE2 source over bytes. The groups ``secret`` or ``second`` are replaced, else the whole match.
        edge: True where the pattern must not begin inside a word.
        back: Bytes before a keyword in which the pattern is looked for.
        reach: Bytes after the end of a keyword in which the pattern is looked for.
        random: True where the value must also look made by chance.
        named: True where a value that only says what to fill in (API_KEY, $KEY, None) is left.
        across: True where halves in two neighbouring log entries are joined.
        source: Page of the maker.
    """

    kind: str
    keywords: tuple[str, ...]
    pattern: str
    edge: bool = True
    back: int = 64
    reach: int = 1024
    random: bool = False
    named: bool = False
    across: bool = True
    source: str


@dataclass(frozen=True, kw_only=True)
class ServiceName:
    """Opaque credentials that only the maker's name beside an assignment tells.

    Attributes:
        kind: What is shown in their place.
        words: Lower-case ASCII spellings of the name.
        least: Shortest value in characters.
        hex: True where only hexadecimal values count.
        source: Page of the maker.
    """

    kind: str
    words: tuple[str, ...]
    least: int
    hex: bool = False
    source: str


@dataclass(frozen=True, kw_only=True)
class SecretRules:
    """All that a `Redactor` is compiled from.

    Attributes:
        dated: Date of the rules, ISO.
        formats: Token formats.
        services: Makers told by name.
        strong: RE2 alternatives of names whose value is believed to be secret.
        weak: Lower-case literals; a value beside them is secret only where it looks random.
    """

    dated: str
    formats: tuple[TokenFormat, ...]
    services: tuple[ServiceName, ...]
    strong: tuple[str, ...]
    weak: tuple[str, ...]
