"""The channels to people: Slack and webhooks out, and the service that receives their decisions."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from agent.app.redaction import redact
from agent.core.decision.decision import ReceiptSigner
from agent.core.decision.signed_request import webhook_secret
from agent.core.plan.plan import Plan
from agent.core.service.services import Services
from agent.ports.clock import Clock
from agent.ports.notifier import Notifier
from agent.settings import Settings

if TYPE_CHECKING:
    from agent.adapters.notifier.slack_reply import SlackReply


def open_notifiers(
    settings: Settings, clock: Clock, plan_of: Callable[[str], Plan | None], services: Services
) -> dict[str, Notifier]:
    """Return the notifiers by name; none where nothing is set.

    Args:
        settings: Who is to be told.
        clock: The time of an attempt.
        plan_of: Finds a plan as it was made, by its id.
        services: The watched services and their owners.
    """
    found: dict[str, Notifier] = {}
    if settings.pagerduty_routing_key is not None:
        found["pagerduty"] = _pagerduty(settings, settings.pagerduty_routing_key.get_secret_value(), services)
    if settings.slack_token is not None and settings.slack_channel is not None:
        from slack_sdk import WebClient

        from agent.adapters.notifier.slack import TIMEOUT_S, SlackNotifier

        token = settings.slack_token.get_secret_value()
        client = WebClient(token=token, base_url=settings.slack_api_url, timeout=TIMEOUT_S, retry_handlers=[])
        found["slack"] = SlackNotifier(
            client,
            channel=settings.slack_channel,
            redact=redact,
            console_url=settings.public_url,
            owner_of=_owner_of(services),
        )
    if settings.webhook_urls:
        from agent.adapters.http.client import public_client
        from agent.adapters.notifier.webhook import WebhookNotifier

        secrets = [webhook_secret(secret.get_secret_value()) for secret in settings.webhook_secrets]
        for url in settings.webhook_urls:
            found[webhook_name(url)] = WebhookNotifier(
                url,
                secrets=secrets,
                client=public_client(),
                clock=clock,
                redact=redact,
                plan_of=plan_of,
                console_url=settings.public_url,
                owner_of=_owner_of(services),
                routing_key_of={service.name: service.routing_key for service in services.services}.get,
            )
    found |= _notify_only(settings, services)
    return found


def _notify_only(settings: Settings, services: Services) -> dict[str, Notifier]:
    """Return the targets of NOTIFY_TARGETS by name."""
    from agent.adapters.notifier.apprise import AppriseNotifier

    owner_of = _owner_of(services)
    return {
        f"notify-{target.name}": AppriseNotifier(
            target, redact=redact, console_url=settings.public_url, owner_of=owner_of
        )
        for target in settings.notify_targets
    }


def webhook_name(url: str) -> str:
    """Return the name of an outgoing webhook, which keeps its address to itself."""
    return f"webhook-{sha256(url.encode()).hexdigest()[:12]}"


def missing_extra() -> str:
    """Return what to install before targets can be told; nothing where it is there."""
    from agent.adapters.notifier.apprise import INSTALL, is_installed

    return "" if is_installed() else INSTALL


def _owner_of(services: Services) -> Callable[[str], str]:
    owners = {service.name: service.owner for service in services.services}
    return lambda name: owners.get(name, "")


def _pagerduty(settings: Settings, routing_key: str, services: Services) -> Notifier:
    from agent.adapters.http.client import HttpClient
    from agent.adapters.notifier.pagerduty import PagerDutyNotifier

    return PagerDutyNotifier(
        settings.pagerduty_url,
        routing_key=routing_key,
        client=HttpClient(timeout_s=10.0),
        redact=redact,
        console_url=settings.public_url,
        owner_of=_owner_of(services),
    )


def slack_secret(settings: Settings) -> bytes | None:
    """Return the signing secret of the Slack app, where there is one."""
    secret = settings.slack_signing_secret
    return secret.get_secret_value().encode() if secret is not None else None


def decider_secrets(settings: Settings) -> Mapping[str, tuple[bytes, ...]]:
    """Return the secrets of those who may decide by webhook, by identity."""
    found: dict[str, tuple[bytes, ...]] = {}
    for name, secret in settings.webhook_deciders:
        found[name] = (*found.get(name, ()), webhook_secret(secret.get_secret_value()))
    return found


def slack_reply() -> "SlackReply":
    """Return what says a word to the one person who pressed a button."""
    from agent.adapters.http.client import public_client
    from agent.adapters.notifier.slack_reply import SlackReply

    return SlackReply(public_client(timeout_s=3))


def operator_token(settings: Settings) -> str:
    """Return an ID token of whoever works at this machine, made for `decide` where its maker lets us choose.

    Raises:
        DependencyFailed: None can be had.
    """
    from agent.adapters.google.operator_token import operator_token as token

    return token(settings.decide_url or "", command=settings.id_token_command)


def open_receipt_signer(settings: Settings) -> ReceiptSigner | None:
    """Return what signs receipts in place of a key of ours: Cloud KMS, where it is set."""
    if settings.receipt_kms is None:
        return None
    from agent.adapters.google.kms import KmsReceiptSigner, default_session

    return KmsReceiptSigner(settings.receipt_kms, default_session())
