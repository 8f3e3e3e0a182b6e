"""How the values of settings are read: text of an environment variable becomes a valid value, or a ValueError."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from pydantic import SecretStr

from agent.core.decision.signed_request import webhook_secret
from agent.errors import SettingsRejected
from agent.presentation.notify_target import NotifyTarget, read_targets

_IDENTITY = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_ROUTING_KEY = re.compile(r"[A-Za-z0-9]{16,64}")
_KMS = re.compile(r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+/cryptoKeyVersions/[0-9]+")

_N = TypeVar("_N", int, float)

SIGNING_CHARS = 16  # the least length of a signing secret


class Mistake(ValueError):
    """A value that is not taken, and why, in words that hold no secret."""


def number(least: float, most: float) -> Callable[[str], float]:
    """Return the reader of a number between two bounds, both included."""
    return _between(float, least, most)


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return the reader of a whole number between two bounds, both included."""
    return _between(int, least, most)


def _between(kind: Callable[[str], _N], least: _N, most: _N) -> Callable[[str], _N]:
    def read(raw: str) -> _N:
        if not least <= (value := kind(raw)) <= most:
            raise ValueError(raw)
        return value

    return read


seconds = number(1e-6, 1e9)


def one_of(*words: str) -> Callable[[str], str]:
    """Return the reader of one of these words."""

    def read(raw: str) -> str:
        if raw not in words:
            raise ValueError(raw)
        return raw

    return read


def or_else(default: str | None) -> Callable[[str], str | None]:
    """Return the reader of a word of OpenTelemetry's, to which an empty value is none."""
    return lambda raw: raw.strip() or default


def scheme(*schemes: str) -> Callable[[str], str]:
    """Return the reader of ``SCHEME:REST``, or of a bare word; a scheme of these ends with a colon."""

    def read(raw: str) -> str:
        head, colon, rest = raw.partition(":")
        bare = {s for s in schemes if not s.endswith(":")}
        if raw in bare or (colon and rest and f"{head}:" in schemes):
            return raw
        raise ValueError(raw)

    return read


def host_and_port(raw: str) -> str:
    """Return ``HOST:PORT`` as it stands."""
    host, _, port = raw.rpartition(":")
    if not host or not port.isascii() or not port.isdigit():
        raise ValueError(raw)
    return raw


def loopback(raw: str) -> str:
    """Return ``HOST:PORT`` of this machine."""
    if host_and_port(raw).rpartition(":")[0] not in {"127.0.0.1", "localhost", "[::1]"}:
        raise ValueError(raw)
    return raw


def switch(raw: str) -> bool:
    """Return whether it is on."""
    known = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False, "": False}
    if raw.lower() not in known:
        raise ValueError(raw)
    return known[raw.lower()]


def file(raw: str) -> Path:
    """Return the path of a file that is there."""
    path = Path(raw)
    if not path.is_file():
        raise ValueError(raw)
    return path


def secret(raw: str) -> SecretStr:
    """Return a secret that is not empty."""
    if not raw:
        raise ValueError(raw)
    return SecretStr(raw)


def listed(raw: str) -> tuple[str, ...]:
    """Return what stands between commas."""
    return tuple(part.strip() for part in raw.split(",") if part.strip())


def own_address(raw: str) -> str:
    """Return an https address without anything behind its host; plain http only on this machine."""
    parts = urlsplit(raw)
    near = parts.scheme == "http" and parts.hostname in {"127.0.0.1", "localhost", "::1"}
    bare = parts.path in {"", "/"} and not (parts.query or parts.fragment or "@" in parts.netloc)
    if not (parts.scheme == "https" or near) or not parts.hostname or not bare:
        raise ValueError(raw)
    _ = parts.port  # raises where it is none
    return f"{parts.scheme}://{parts.netloc}"


def slack_api(raw: str) -> str:
    """Return the address that the bot token goes to: https, or a stand-in on this machine."""
    parts = urlsplit(raw)
    near = parts.scheme == "http" and parts.hostname in {"127.0.0.1", "localhost", "::1"}
    if not (parts.scheme == "https" or near) or not parts.hostname or "@" in parts.netloc:
        raise ValueError(raw)
    return raw


def command(raw: str) -> tuple[str, ...]:
    """Return the words of a command, quoted as for a shell."""
    return tuple(shlex.split(raw))


def whsec(raw: str) -> SecretStr:
    """Return a secret of Standard Webhooks."""
    try:
        webhook_secret(raw)
    except SettingsRejected as error:
        raise ValueError(error.why) from error
    return SecretStr(raw)


def whsecs(raw: str) -> tuple[SecretStr, ...]:
    """Return secrets of Standard Webhooks, separated by commas."""
    return tuple(whsec(part) for part in listed(raw))


def deciders(raw: str) -> tuple[tuple[str, SecretStr], ...]:
    """Return identities and their secrets; one may have two."""
    pairs = [part.partition("=") for part in listed(raw)]
    if not all(_IDENTITY.fullmatch(name) for name, _, _ in pairs):
        raise ValueError(raw)
    return tuple((name, whsec(given)) for name, _, given in pairs)


def routing_key(raw: str) -> SecretStr:
    """Return an integration key of PagerDuty."""
    if not _ROUTING_KEY.fullmatch(raw):
        raise ValueError(raw)
    return SecretStr(raw)


def pagerduty_secrets(raw: str) -> tuple[SecretStr, ...]:
    """Return the secrets of a webhook subscription; two while it is rotated."""
    found = listed(raw)
    if not found or not all(len(part) >= SIGNING_CHARS for part in found):
        raise ValueError(raw)
    return tuple(SecretStr(part) for part in found)


def notify_targets(raw: str) -> tuple[NotifyTarget, ...]:
    """Return the targets that are only told.

    Raises:
        Mistake: With every mistake of them.
    """
    try:
        return read_targets(raw)
    except SettingsRejected as error:
        raise Mistake(error.why) from error


def kms_key(raw: str) -> str:
    """Return the name of a version of a Cloud KMS key."""
    if not _KMS.fullmatch(raw):
        raise ValueError(raw)
    return raw


def pairs_of(raw: str) -> dict[str, SecretStr]:
    """Return secrets by name."""
    pairs = [part.split("=", 1) for part in listed(raw)]
    if any(len(pair) != 2 or not all(pair) for pair in pairs):
        raise ValueError(raw)
    return {name: SecretStr(given) for name, given in pairs}
