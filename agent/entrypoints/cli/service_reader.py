"""Reads services for the command line: live with the operator's own credentials, the rest through their client."""

from collections.abc import Callable

from agent.app import App, build_app
from agent.app.catalogues import read_capacity, read_services
from agent.app.redaction import redact
from agent.app.runtime_environment import open_environment
from agent.app.stores import machine_clock
from agent.core.service.services import Services
from agent.core.service.serving import ServingConfig
from agent.entrypoints.operator_client.local import LocalClient, open_operator_client
from agent.entrypoints.operator_client.protocol import OperatorClient, now
from agent.entrypoints.telemetry import configure_log
from agent.ports.audit_log import AuditLog
from agent.ports.platform import Platform
from agent.ports.store import Query
from agent.presentation.service_view import SHOWN_INCIDENTS, ServiceView
from agent.settings import read_settings
from agent.stages.shared.change_authors import with_audited_authors
from agent.stages.shared.service_view import view_service


class ServiceReader:
    """Puts together what is known of the watched services; read-only.

    Args:
        services: What is watched.
        client: Tells incidents and what was seen.
        platform_of: Describes a service; None where nobody does from here.
        price: USD of an hour of one instance.
        audit_log: Who changed a service; None where nobody tells it from here.
    """

    def __init__(
        self,
        services: Services,
        client: OperatorClient,
        platform_of: Callable[[str], Platform | None],
        price: Callable[[str, ServingConfig], float | None],
        audit_log: AuditLog | None = None,
    ) -> None:
        self.services, self._client, self._audit_log = services, client, audit_log
        self._platform_of, self._price = platform_of, price

    def views(self, name: str | None) -> tuple[ServiceView, ...]:
        """Return one service, or all of them.

        Raises:
            InputRejected: No service of that name is watched.
            DependencyFailed: Nobody tells the incidents.
        """
        chosen = self.services.services if name is None else (self.services.service(name),)
        return tuple(
            view_service(
                service,
                self._platform_of(service.name),
                record=with_audited_authors(self._client.service_record(service.name), self._audit_log, now()),
                incidents=self._client.incidents(Query(service=service.name, limit=SHOWN_INCIDENTS)),
                redact=redact,
                price=self._price,
            )
            for service in chosen
        )


def open_service_reader() -> ServiceReader:
    """Return the reader of the settings.

    Raises:
        SettingsRejected: The settings do not make one.
        DependencyFailed: A file of the state cannot be opened.
    """
    configure_log(as_json=False, quiet=True)
    settings = read_settings()
    if settings.decide_url is None and settings.embedded:
        return _local(build_app(settings))
    services = read_services(settings)
    price = read_capacity(services).cost_usd_per_h
    client = open_operator_client()
    if settings.platform.startswith("rehearsal:") or settings.platform == "none":
        return ServiceReader(
            services, client, lambda _: None, price
        )  # nothing is rehearsed beside a cloud installation
    live = open_environment(settings, services, machine_clock())
    return ServiceReader(services, client, live.platform_of, price, live.audit_log)


def _local(app: App) -> ServiceReader:
    live, price = app.environment, app.rules.fits.cost_usd_per_h
    return ServiceReader(app.services, LocalClient(app), live.platform_of, price, live.audit_log)
