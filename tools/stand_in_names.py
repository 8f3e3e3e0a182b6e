"""Fixed names in the place of what tells whose installation a record comes from, and a second look for what is left."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any, Final
from urllib.parse import unquote

PROJECT: Final = "example-project"
NUMBER: Final = "000000000000"

_DOCUMENTED = tuple(map(ip_network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")))
_PUBLIC = re.compile(
    r"(?:[\w-]+\.)*(?:example|example\.com|localhost|googleapis\.com|google\.com|github\.com|vllm\.ai|pytorch\.org"
    r"|huggingface\.co|hf\.co|nvidia\.com|python\.org|docker\.io|pkg\.dev|gcr\.io)",
    re.IGNORECASE,
)
_OURS = re.compile(rf"[a-z0-9-]+-{NUMBER}\.[a-z0-9-]+\.run\.app")
_SHARED = frozenset({"vertex-ai", "cloudrun", "google-samples", "deeplearning-platform-release", "example-models"})


def _harmless_host(host: str) -> bool:
    return bool(_PUBLIC.fullmatch(host) or _OURS.fullmatch(host)) or _is_address(host.strip("[]"))


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _harmless_address(text: str) -> bool:
    """Whether it is no address, one of this machine or link, or one that documentation may use."""
    if not _is_address(text):
        return True
    found = ip_address(text)
    unroutable = found.is_loopback or found.is_unspecified or found.is_link_local
    return unroutable or any(found in network for network in _DOCUMENTED if network.version == found.version)


def _harmless_project(name: str) -> bool:
    return bool(re.fullmatch(rf"{PROJECT}(-\d+)?|{NUMBER}", name)) or name in _SHARED


_NAMED: Final[Mapping[str, Callable[[int], str]]] = {
    "account": lambda n: f"account-{n}",
    "project": lambda n: PROJECT if n == 1 else f"{PROJECT}-{n}",
    "bucket": lambda n: f"example-bucket-{n}",
    "person": lambda n: f"person-{n}",
    "host": lambda n: f"host-{n}.example.com",
}


@dataclass(frozen=True, kw_only=True)
class _Look:
    """What a kind of name looks like wherever it stands, and which of them tell nothing."""

    kind: str
    pattern: re.Pattern[str]
    name: Callable[[int], str]
    harmless: Callable[[str], bool]


_LOOKS: Final = (
    _Look(
        kind="service account",
        pattern=re.compile(r"[\w.%+-]+@[\w.-]+\.gserviceaccount\.com", re.IGNORECASE),
        name=_NAMED["account"],
        harmless=lambda _: False,
    ),
    _Look(
        kind="host name",
        pattern=re.compile(r"(?<=://)(?<!gs://)(?:[^\s/@\"'<>]+@)?(?:\[[0-9a-fA-F:.]+\]|[\w.-]+)"),
        name=_NAMED["host"],
        harmless=_harmless_host,
    ),
    _Look(
        kind="e-mail address",
        pattern=re.compile(r"[\w.%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"),
        name=_NAMED["person"],
        harmless=lambda _: False,
    ),
    _Look(
        kind="host name",
        pattern=re.compile(
            r"\b(?:[\w-]+\.)+(?:run\.app|cloudfunctions\.net|appspot\.com|internal|cluster\.local|corp|lan)\b"
            r"|\bip-\d+-\d+-\d+-\d+\b",
            re.IGNORECASE,
        ),
        name=_NAMED["host"],
        harmless=_harmless_host,
    ),
    _Look(
        kind="IP address",
        pattern=re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.]*\d)"),
        name=lambda n: f"192.0.2.{n}" if n < 255 else f"198.51.100.{n % 254 + 1}",
        harmless=_harmless_address,
    ),
    _Look(
        kind="IP address",
        pattern=re.compile(r"(?<![\w:.])[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:])"),
        name=lambda n: f"2001:db8::{n:x}",
        harmless=_harmless_address,
    ),
    _Look(
        kind="bucket",
        pattern=re.compile(r"(?<=\bgs://)[\w.-]+"),
        name=_NAMED["bucket"],
        harmless=lambda name: name.startswith("example-"),
    ),
    _Look(
        kind="project",
        pattern=re.compile(
            r"(?<=\bprojects/)[a-z0-9][a-z0-9.:-]*[a-z0-9]|(?:(?<=\.pkg\.dev/)|(?<=\bgcr\.io/))[a-z][a-z0-9-]+"
        ),
        name=_NAMED["project"],
        harmless=_harmless_project,
    ),
)


class StandInNames:
    """The fixed names of one record: the same name stands for the same thing in all of its files.

    Args:
        projects: Projects by id, the installation's own first; replaced wherever their letters stand.
        numbers: Project numbers.
        accounts: Who is logged in, and service accounts.
        buckets: Buckets, whole names only.
        people: What channels call those who decided, whole names only.
    """

    def __init__(
        self,
        *,
        projects: Iterable[str],
        numbers: Iterable[str] = (),
        accounts: Iterable[str] = (),
        buckets: Iterable[str] = (),
        people: Iterable[str] = (),
    ) -> None:
        self._made: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        known = dict.fromkeys(numbers, ("project number", NUMBER))
        groups = (("account", accounts), ("project", projects), ("bucket", buckets), ("person", people))
        for kind, found in groups:
            known |= {name: (kind, self._new(name, _NAMED[kind])) for name in dict.fromkeys(found) if name}
        longest = sorted(((n, v) for n, v in known.items() if n and n != v[1]), key=lambda row: -len(row[0]))
        self._known = [(kind, _where(kind, name), stands) for name, (kind, stands) in longest]

    def replaced(self, value: Any) -> Any:
        """Return a text, or what holds texts, with the fixed names in it."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {self._text(str(key)): self.replaced(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.replaced(inner) for inner in value]
        return value

    def left(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield line and kind of what a text still tells, also where a URL has encoded it; never the thing itself."""
        for number, line in enumerate(text.splitlines(), start=1):
            for shown in dict.fromkeys((line, unquote(line))):
                found = [kind for kind, pattern, _ in self._known if pattern.search(shown)]
                found += [
                    look.kind for look in _LOOKS if any(not look.harmless(m[0]) for m in look.pattern.finditer(shown))
                ]
                yield from ((number, kind) for kind in dict.fromkeys(found))

    def _text(self, text: str) -> str:
        for _, pattern, stands in self._known:
            text = pattern.sub(stands, text)
        for look in _LOOKS:
            text = look.pattern.sub(lambda m, look=look: self._stands_for(look, m[0]), text)  # type: ignore[misc]
        return text

    def _stands_for(self, look: _Look, found: str) -> str:
        return found if look.harmless(found) else self._new(found, look.name)

    def _new(self, found: str, name: Callable[[int], str]) -> str:
        family = name(0)
        if (family, found) not in self._made:
            self._counts[family] = self._counts.get(family, 0) + 1
            self._made[family, found] = name(self._counts[family])
        return self._made[family, found]


def _where(kind: str, name: str) -> re.Pattern[str]:
    """Return where a known name stands: a project's id anywhere, others as whole names."""
    quoted = re.escape(name)
    whole = quoted if kind in {"project", "project number", "account"} else rf"(?<![\w-]){quoted}(?![\w-])"
    return re.compile(whole, re.IGNORECASE)
