"""A watched service is put together for people: described where that is possible, else as it was seen last."""

from collections.abc import Callable

from agent.core.change.config_drift import ServiceRecord, drift_of, state_of
from agent.core.incident.incident import Incident
from agent.core.service.services import Service
from agent.core.service.serving import Live, ServingConfig
from agent.errors import SreError
from agent.ports.platform import NotDeployed, Platform
from agent.presentation.service_view import ServiceView

NO_PLATFORM = "its platform is not asked from here"


def view_service(
    service: Service,
    platform: Platform | None,
    *,
    record: ServiceRecord | None,
    incidents: tuple[Incident, ...],
    redact: Callable[[str], str],
    price: Callable[[str, ServingConfig], float | None],
) -> ServiceView:
    """Return what is known of a service; describing it wakes nobody and changes nothing.

    Args:
        service: The service as services.toml names it.
        platform: Who describes it; None where nobody does from here.
        record: What was seen of it.
        incidents: The newest first.
        redact: Takes secrets out of a text.
        price: USD of an hour of one instance.
    """
    live, why, deployed = _described(service, platform)
    approved = record.approved if record is not None else None
    if live is not None:
        state = state_of(live, redact)
        drift = drift_of(service, state, approved, redact=redact)
    else:
        state = record.state if record is not None else {}
        drift = record.drift if record is not None else ()
    return ServiceView(
        service=service,
        live=live,
        not_described=why,
        deployed=deployed,
        record=record,
        state=state,
        drift=drift,
        incidents=incidents,
        usd_per_h=price(service.name, live.config) if live is not None else None,
    )


def _described(service: Service, platform: Platform | None) -> tuple[Live | None, str, bool]:
    if platform is None:
        return None, NO_PLATFORM, True
    try:
        return platform.describe(service.name), "", True
    except SreError as error:
        return None, str(error), not isinstance(error, NotDeployed)
