"""What an event and an incident cost in Firestore operations, counted on Google's emulator with the stages as they are.

Run: python benchmarks/firestore_operations.py. Prices: Firestore Standard edition in us-central1, USD 0.03 for 100,000
reads, 0.09 for writes, 0.01 for deletes (cloud.google.com/firestore/pricing, as of 2026-11-21; look them up anew).
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from agent.structured_log import structlog

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

USD_READ, USD_WRITE, USD_DELETE = 0.03e-5, 0.09e-5, 0.01e-5
STORM = 1_000
EXAMPLE = "gemma4-26b-l4-startup-probe"


def _taken(documents: tuple[Any, ...]) -> tuple[int, int, int]:
    """Operations since the last asking, over both databases."""
    from agent.adapters.store.firestore.documents import Operations

    counted = tuple(sum(getattr(d.operations, kind) for d in documents) for kind in ("reads", "writes", "deletes"))
    for one in documents:
        one.operations = Operations()
    return counted[0], counted[1], counted[2]


def _line(what: str, operations: tuple[int, int, int], count: int = 1) -> None:
    reads, writes, deletes = (n / count for n in operations)
    usd = reads * USD_READ + writes * USD_WRITE + deletes * USD_DELETE
    print(f"{what:<52} {reads:>8.2f} {writes:>8.2f} {deletes:>8.2f} {usd * 1e6:>12.2f}")


def main() -> None:
    """Print operations per event of a storm, per duplicate, and per incident from its first event to its end."""
    from agent.app.catalogues import read_capacity, read_services
    from agent.entrypoints.service import publish_example
    from agent.settings import read_settings
    from tests.firestore_emulator import Emulator
    from tests.simulation.kills import FITS, Journey

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    FITS[EXAMPLE] = read_capacity(read_services(read_settings({}, platform=f"rehearsal:{ROOT / 'examples' / EXAMPLE}")))
    with tempfile.TemporaryDirectory() as name:
        emulator = Emulator(Path(name) / "emulator.log")
        try:
            case = {"example": EXAMPLE, "firestore": [emulator.host, "benchmark"]}
            journey = Journey(Path(name), case, kill_at=None, before=False)
            documents = journey.documents
            print(f"{'':<52} {'reads':>8} {'writes':>8} {'deletes':>8} {'USD/million':>12}")
            publish_example(journey.installation, journey.example)
            journey.work()
            _line("an incident: events to the question to a person", _taken(documents))
            outcome = journey.run()
            _line(f"the same incident: answer to {outcome['incidents'][0][1]}", _taken(documents))
            _ticks(journey, documents)
            _storm(journey, documents)
        finally:
            emulator.stop()


def _ticks(journey: Any, documents: tuple[Any, ...]) -> None:
    from agent.entrypoints.pubsub.handlers import on_tick
    from agent.ports.stage_context import Owner

    for _ in range(60):
        journey.clock.step(60)
        on_tick(journey.installation.contexts[Owner.TICK])
    _line("a tick with nothing to do", _taken(documents), 60)


def _storm(journey: Any, documents: tuple[Any, ...]) -> None:
    """Equal lines of a new revision, told one by one; then all of them once more."""
    from agent.entrypoints.service import entry_message
    from tests.simulation.simulated.places import events, stamped

    at = journey.clock.now().isoformat().replace("+00:00", "Z")
    entries = [stamped(events("probe")[0], at, n, "gemma4-26b-qat-l4-00099-new") for n in range(STORM)]
    for entry in entries[:1]:
        journey.installation.bus.publish(entry_message(entry))
        journey.work()
    _taken(documents)
    for entry in entries[1:]:
        journey.installation.bus.publish(entry_message(entry))
        journey.work()
    _line(f"an event of a storm of {STORM:,}", _taken(documents), STORM - 1)
    for entry in entries:
        message = entry_message(entry)
        journey.installation.bus.publish(message.with_(id=f"{message.id}-again"))
        journey.work()
    _line("a duplicate of one", _taken(documents), STORM)


if __name__ == "__main__":
    main()
