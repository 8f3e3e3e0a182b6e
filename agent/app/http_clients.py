"""What the entry points ask outside over HTTP: the deciding function, keys of those who sign tokens, other services."""

from collections.abc import Callable, Mapping
from typing import Any

from agent.ports.clock import Clock
from agent.ports.decide import Decide
from agent.ports.json_probe import ProbeReply

Keys = Callable[[str], Mapping[str, Any] | None]


def decide_client(url: str, *, timeout_s: float) -> Decide:
    """Return what speaks to the deciding function at an address, each request inside a time."""
    from agent.adapters.decide_client import DecideClient

    return DecideClient(url, timeout_s=timeout_s)


def google_keys(clock: Clock) -> Keys:
    """Return the public keys of Google's accounts; fetched when one is needed."""
    from agent.adapters.google.key_set import GOOGLE_KEYS, KeySet

    return KeySet(clock, url=GOOGLE_KEYS, holder="Google's accounts")


def proxy_keys(clock: Clock) -> Keys:
    """Return the public keys of Identity-Aware Proxy; fetched when one is needed."""
    from agent.adapters.google.key_set import IAP_KEYS, KeySet

    return KeySet(clock, url=IAP_KEYS, holder="Identity-Aware Proxy")


def ask(url: str, *, headers: Mapping[str, str] | None = None, data: Mapping[str, Any] | None = None) -> ProbeReply:
    """Ask another service once; see the port."""
    from agent.adapters.http.json_probe import ask as asked

    return asked(url, headers=headers, data=data)
