"""Which methods of the ports change the world: every one that is not known to read only."""

from agent.ports.bus import Bus, Quarantine
from agent.ports.control import ControlStore
from agent.ports.platform import Platform
from agent.ports.stage_context import Cards
from agent.ports.store import IncidentStore

PORTS = {
    "store": IncidentStore,
    "control": ControlStore,
    "cards": Cards,
    "bus": Bus,
    "quarantine": Quarantine,
    "platform": Platform,
}
READS = {
    "store": {
        *("knows", "head", "load", "signals", "outbox", "unsent", "due"),
        *("latest_time", "incidents", "timeline", "plan", "mark"),
    },
    "control": {"limits", "kill_switch", "intent", "holds", "audit", "mark", "change_request", "ballot"},
    "cards": {"card"},
    "bus": set(),
    "quarantine": {"rows"},
    "platform": {"describe", "validate", "find", "operation", "restored", "measure"},
}


def methods(port):
    """Return what a port promises, what it inherits from another port too."""
    mine = [cls for cls in PORTS[port].__mro__ if cls.__module__.startswith("agent.")]
    return {name for cls in mine for name, value in vars(cls).items() if callable(value) and not name.startswith("_")}


def effects():
    """Return every method of a port that may change the world, as ``port.method``."""
    return sorted(f"{port}.{method}" for port in PORTS for method in methods(port) - READS[port])
