"""What is read once per process: catalogues, rules, policy, the watched services, and the key of the receipts."""

from collections.abc import Callable
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent.app.key_file import own_key
from agent.app.redaction import redact
from agent.catalogue.load_bundled import load_default_policy
from agent.catalogue.load_failures import FailureCatalogue, load_failures
from agent.core.decision.policy import Policy, parse_policy
from agent.core.incident.times import Times
from agent.core.intake.origin import Reading, watch_everything, watched_by
from agent.core.plan.capacity import Capacity
from agent.core.service.services import Services, parse_services
from agent.errors import SettingsRejected
from agent.failures.match.matcher import Matcher, compile_catalogue
from agent.ports.stage_context import Rules
from agent.settings import Settings

if TYPE_CHECKING:
    from agent.catalogue.service_capacity import ServiceCapacity

HOST_SERVICES: Final = "services.toml"
LEASE_FLOOR_S: Final = 5.0  # calls take as long in a rehearsal as anywhere; a lease must outlive the longest


@cache
def failures() -> FailureCatalogue:
    """Return the failure catalogue; read once per process."""
    return load_failures()


@cache
def matcher() -> Matcher:
    """Return the compiled failure catalogue; built once per process."""
    return compile_catalogue(failures().signatures, failures().words)


@cache
def titles() -> dict[str, str]:
    """Return a line for people by signature."""
    return {s.id: s.title for s in failures().signatures}


def read_capacity(services: Services, settings: Settings | None = None) -> "ServiceCapacity":
    """Return the arithmetic, bound to the watched services and to the profiles that were added beside the store."""
    from agent.catalogue.load_fit import load_fit_catalogue
    from agent.catalogue.load_platforms import load_platform_catalogue
    from agent.catalogue.service_capacity import ServiceCapacity

    catalogue, platforms = load_fit_catalogue(), load_platform_catalogue()
    if settings is None or not settings.embedded:
        return ServiceCapacity(services, catalogue, platforms)
    from agent.adapters.store.sqlite.profiles import SqliteProfileShelf
    from agent.app.measurements import usable_measurements

    shelf, measured = SqliteProfileShelf(settings.state / "profiles.sqlite"), partial(usable_measurements, settings)
    return ServiceCapacity(services, catalogue, platforms, profiles=shelf.list, measurements=measured)


def read_rules(services: Services, policy: Policy, times: Times, *, capacity: Capacity | None = None) -> Rules:
    """Return what was read once: catalogues, rules, policy, times.

    Args:
        services: The watched services.
        policy: What may be done.
        times: How long is waited for what.
        capacity: The arithmetic; loaded for the services when None.
    """
    return Rules(
        matcher=matcher(),
        titles=titles(),
        redact=redact,
        policy=policy,
        fits=capacity if capacity is not None else read_capacity(services),
        times=times,
        services=services,
        printed=failures().printed,
    )


def read_policy(settings: Settings) -> Policy:
    """Return the policy file's policy, or the default, in which nothing is automatic."""
    default = load_default_policy()
    policy = default if settings.policy is None else parse_policy(settings.policy.read_text(), default=default)
    return policy if settings.unattended else policy.attended()


def read_services(settings: Settings) -> Services:
    """Return the watched services: of the settings, or of the rehearsal's own file."""
    path = settings.services
    if path is None and settings.platform.startswith("rehearsal:"):
        path = Path(settings.platform.removeprefix("rehearsal:")) / "services.toml"
    if path is None and settings.platform == "host":
        return host_services(settings)
    if path is None:
        return Services(services=())
    try:
        text = path.read_text()
    except OSError as error:
        raise SettingsRejected(
            f"services file {str(path)!r} was not read", why=str(error), hint="set SERVICES to a file that can be read"
        ) from error
    return parse_services(text)


def host_folder(settings: Settings) -> Path:
    """Return the folder with the records of this machine's servers."""
    return settings.state / "host"


def host_services(settings: Settings) -> Services:
    """Return the servers that were started on this machine, as services to be watched."""
    path = host_folder(settings) / HOST_SERVICES
    return parse_services(path.read_text()) if path.is_file() else Services(services=())


def project_of(settings: Settings) -> str | None:
    """Return the Google Cloud project that the settings name: of the store, else of the bus, else of the platform."""
    named = (text.partition(":") for text in (settings.store, settings.bus, settings.platform))
    return next((name for kind, _, name in named if kind in {"firestore", "pubsub", "cloud_run"}), None)


def log_project_of(settings: Settings) -> str | None:
    """Return the project whose logs a replay reads: where the watched services run, which need not hold the store."""
    kind, _, named = settings.platform.partition(":")
    watched = read_services(settings).services if settings.services else ()
    runs_in = named if kind == "cloud_run" else next((s.project for s in watched if s.project), None)
    return runs_in or project_of(settings)


def reading_of(services: Services, *, run: str, clock: Callable[[], datetime]) -> Reading:
    """Return what intake must know: which services are watched, and which are our own."""
    return Reading(
        run=run,
        watched=watched_by(services) if services.services else watch_everything,
        own_services=frozenset(services.own),
        clock=clock,
        service=services.services[0].name if len(services.services) == 1 else None,
    )


def faster(times: Times, factor: float) -> Times:
    """Return the times of a rehearsal: every wait but the approval divided by the factor."""
    if factor == 1:
        return times
    return times.with_(
        quiet_s=times.quiet_s / factor,
        settle_s=times.settle_s / factor,
        verify_s=times.verify_s / factor,
        poll_s=max(times.poll_s / factor, 0.2),
        lease_s=max(times.lease_s / factor, LEASE_FLOOR_S),
        cool_off_s=times.cool_off_s / factor,
        rollout_limit_s=max(times.rollout_limit_s / factor, LEASE_FLOOR_S),
    )


def read_receipt_key(settings: Settings) -> bytes:
    """Return the key that signs decisions: of the settings, or of a file that only its owner can read.

    Raises:
        SettingsRejected: There is none, or half of one.
        DependencyFailed: The file cannot be read or made.
    """
    if settings.receipt_key is not None:
        return settings.receipt_key.get_secret_value().encode()
    if not settings.embedded:
        raise SettingsRejected(
            "decisions cannot be signed",
            why="RECEIPT_KEY is unset",
            hint="give this function the secret: ./deploy.sh apply",
        )
    return own_key(settings.state / "receipt.key")
