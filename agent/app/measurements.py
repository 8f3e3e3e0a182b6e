"""Where the measurements of an installation lie: beside the embedded store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.errors import DependencyFailed, InputRejected
from agent.fit.speed.calibration import Measurement

if TYPE_CHECKING:
    from agent.adapters.store.sqlite.measurements import SqliteMeasurements
    from agent.settings import Settings


def measurement_store(settings: Settings) -> SqliteMeasurements:
    """Return the measurements of an installation.

    Raises:
        InputRejected: The store is in the cloud: measurements are kept beside the embedded store only.
    """
    from agent.adapters.store.sqlite.measurements import SqliteMeasurements

    if not settings.embedded:
        raise InputRejected(
            "no measurements were looked up",
            why=f"the store {settings.store!r} does not keep them",
            hint="use STORE=sqlite:<folder>",
        )
    return SqliteMeasurements(settings.state / "measurements.sqlite")


def stored_measurements(settings: Settings) -> tuple[Measurement, ...]:
    """Return what was measured here; nothing in the cloud."""
    return measurement_store(settings).list() if settings.embedded else ()


def usable_measurements(settings: Settings) -> tuple[Measurement, ...]:
    """Return what was measured here, nothing where it cannot be read: no plan waits for how fast a server may be."""
    try:
        return stored_measurements(settings)
    except DependencyFailed:
        return ()
