"""The settings: environment variables turned into valid values, read once, all mistakes reported at once."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from pydantic import Field, SecretStr

from agent import setting_values as values
from agent.core.decision.signed_request import webhook_secret
from agent.core.diagnosis.model_price import ModelPrice
from agent.core.incident.incident import Times
from agent.core.service.cluster_rights import lease_name
from agent.core.value import Value
from agent.errors import SettingsRejected
from agent.presentation.notify_target import NotifyTarget

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def first_example() -> str:
    """The rehearsal that a newcomer sees, wherever the command is called from; nothing where there are no examples."""
    folder = EXAMPLES / "gemma4-26b-l4-startup-probe"
    return f"rehearsal:{folder}" if folder.is_dir() else "none"


class Settings(Value):
    """Everything that differs between two installations.

    Attributes:
        store: ``sqlite:FOLDER`` (embedded: state, control and queue stand in that folder) or ``firestore:PROJECT``.
        bus: ``embedded`` or ``pubsub:PROJECT``.
        pubsub_emulator: ``HOST:PORT`` of Google's Pub/Sub emulator; None is the real service.
        platform: Where services run, such as ``cloud_run:PROJECT``; ``WORDS`` has them all.
        cloud_run_emulator: ``HOST:PORT`` of a stand-in for Cloud Run on this machine, for tests; None is the real one.
        logging_emulator: The same for Cloud Logging, as ``tpu_emulator`` is for Cloud TPU.
        container_apps_log_stream: Whether the log stream of container apps is read where Log Analytics has no row yet.
            The right to it could open a shell in them, so it is off.
        services: The file of watched services; None takes the rehearsal's own.
        policy: The policy file; None is the default policy, in which nothing is automatic.
        receipt_key: Signs decisions; embedded installations keep one in a file beside the store.
        unattended: False asks a person about everything, whatever the policy says; ``watch`` sets it.
        follow_log: The log of a server that somebody else starts; ``watch --log`` sets it.
        restart_command: The operator's fixed words that restart that server; nothing is ever put into them.
        compression: Divides waits in a rehearsal; screens say so.
        rehearse_by_fit: Whether a rehearsal answers by the arithmetic what was not recorded, and labels it so.
        service_api_keys: Keys that watched servers want themselves, by the name that services.toml gives them.
        webhook_deciders: Identity and secret of who may decide by webhook; twice the same identity is a rotation.
        model_usd_in: What a million tokens of questions costs, USD, as ``model_usd_out`` of answers; None where the
            operator names no price.
        receipt_kms: A Cloud KMS key version that signs receipts in place of a key of our own.
        decide_url: Where `decide` is; the command line and the console of the cloud send decisions there.
        id_token_audiences: For whom an operator's ID token may have been made; none refuses every one.
        id_token_command: The operator's fixed words that print an ID token; nothing is ever put into them.
        form_key: Signs the console's forms, the same in every instance of it.
        otlp_endpoint: Where spans are sent; None sends none. The SDK reads this and its other settings by itself.
        genai_content: Whether questions to the model and its answers may stand in spans.
        bind: The address that ``up`` listens on. Elsewhere than on loopback nobody is trusted for being there.
    """

    store: str = "sqlite:state"
    bus: str = "embedded"
    pubsub_emulator: str | None = None
    platform: str = Field(default_factory=first_example)
    cloud_run_emulator: str | None = None
    tpu_emulator: str | None = None
    logging_emulator: str | None = None
    container_apps_log_stream: bool = False
    services: Path | None = None
    policy: Path | None = None
    receipt_key: SecretStr | None = None
    times: Times = Times()
    compression: float = Field(default=1.0, ge=1)
    kill_switch: bool = False
    rehearse_by_fit: bool = True
    model_endpoints: tuple[str, ...] = ()
    model_name: str | None = None
    model_api_key: SecretStr | None = None
    model_ask_when: str = "always"
    model_wake_when: str = "uncertain"
    model_may_ask: bool = True
    model_usd_in: float | None = None
    model_usd_out: float | None = None
    slack_token: SecretStr | None = None
    slack_signing_secret: SecretStr | None = None
    slack_channel: str | None = None
    webhook_urls: tuple[str, ...] = ()
    slack_api_url: str = "https://slack.com/api/"
    webhook_secrets: tuple[SecretStr, ...] = ()
    webhook_deciders: tuple[tuple[str, SecretStr], ...] = ()
    pagerduty_routing_key: SecretStr | None = None
    pagerduty_url: str = "https://events.pagerduty.com"
    pagerduty_secrets: tuple[SecretStr, ...] = ()
    notify_targets: tuple[NotifyTarget, ...] = ()
    receipt_kms: str | None = None
    ingest_secrets: Mapping[str, SecretStr] = Field(default_factory=dict)
    service_api_keys: Mapping[str, SecretStr] = Field(default_factory=dict)
    hub_token: SecretStr | None = None
    hub_url: str = "https://huggingface.co"
    hub_offline: bool = False
    unattended: bool = True
    follow_log: Path | None = None
    restart_command: tuple[str, ...] = ()
    public_url: str = "http://127.0.0.1:8080"
    iap_audience: str | None = None
    decide_url: str | None = None
    id_token_audiences: tuple[str, ...] = ()
    id_token_command: tuple[str, ...] = ()
    form_key: SecretStr | None = None
    bind: str = "127.0.0.1"
    lease: str | None = None
    log_json: bool = False
    otlp_endpoint: str | None = None
    otlp_protocol: str = "http/protobuf"
    traces_exporter: str = "otlp"
    genai_content: str = "no_content"

    @property
    def embedded(self) -> bool:
        """Whether state lives in files of this machine."""
        return self.store.startswith("sqlite:")

    @property
    def trusts_this_machine(self) -> bool:
        """Whether whoever sits here counts as the operator: nobody else can reach an embedded service on loopback."""
        return self.embedded and self.bind in {"127.0.0.1", "::1"}

    @property
    def model_price(self) -> ModelPrice | None:
        """What the model's tokens cost; None where no price is set."""
        if self.model_usd_in is None or self.model_usd_out is None:
            return None
        return ModelPrice(usd_per_million_in=self.model_usd_in, usd_per_million_out=self.model_usd_out)

    @property
    def state(self) -> Path:
        """The folder of the embedded state."""
        return Path(self.store.removeprefix("sqlite:"))


@dataclass(frozen=True, kw_only=True)
class _Word:
    """One environment variable: where it goes, how it is read, what it wants."""

    field: str
    read: Callable[[str], Any]
    want: str


_BY_CREDENTIALS = ("kubernetes", "kubernetes:", "ec2", "ec2:")
_WHEN = ("always", "uncertain", "never")
_STAND_IN = "127.0.0.1:port of a stand-in on this machine, for tests and rehearsals"

WORDS: dict[str, _Word] = {
    "STORE": _Word(
        field="store", read=values.scheme("sqlite:", "firestore:"), want="sqlite:<folder> | firestore:<project>"
    ),
    "BUS": _Word(field="bus", read=values.scheme("embedded", "pubsub:"), want="embedded | pubsub:<project>"),
    "PUBSUB_EMULATOR_HOST": _Word(field="pubsub_emulator", read=values.host_and_port, want="host:port of an emulator"),
    "PLATFORM": _Word(
        field="platform",
        read=values.scheme("rehearsal:", "cloud_run:", *_BY_CREDENTIALS, "container_apps:", "tpu_vm:", "host"),
        want="rehearsal:<folder> | cloud_run:<project> | kubernetes[:<context>] | ec2[:<profile>] | "
        "container_apps:<subscription> | tpu_vm:<project> | host",
    ),
    "CLOUD_RUN_EMULATOR_HOST": _Word(field="cloud_run_emulator", read=values.loopback, want=_STAND_IN),
    "TPU_EMULATOR_HOST": _Word(field="tpu_emulator", read=values.loopback, want=_STAND_IN),
    "CLOUD_LOGGING_EMULATOR_HOST": _Word(field="logging_emulator", read=values.loopback, want=_STAND_IN),
    "CONTAINER_APPS_LOG_STREAM": _Word(
        field="container_apps_log_stream",
        read=values.switch,
        want="on | off: read replicas' log streams too; its right could open a shell, see docs/container-apps.md",
    ),
    "SERVICES": _Word(field="services", read=values.file, want="the path of services.toml"),
    "POLICY": _Word(field="policy", read=values.file, want="the path of policy.toml"),
    "RECEIPT_KMS": _Word(field="receipt_kms", read=values.kms_key, want="projects/.../cryptoKeyVersions/N, a MAC key"),
    "RECEIPT_KEY": _Word(field="receipt_key", read=values.secret, want="a secret of 32 bytes or more"),
    "KILL_SWITCH": _Word(field="kill_switch", read=values.switch, want="on | off"),
    "REHEARSAL_COMPRESSION": _Word(field="compression", read=values.number(1, 1e6), want="a factor >= 1"),
    "REHEARSE_BY_FIT": _Word(field="rehearse_by_fit", read=values.switch, want="on | off"),
    "APPROVAL_TTL_S": _Word(field="times.approval_s", read=values.seconds, want="seconds > 0"),
    "COOL_OFF_S": _Word(field="times.cool_off_s", read=values.seconds, want="seconds > 0"),
    "VERIFY_WINDOW_S": _Word(field="times.verify_s", read=values.seconds, want="seconds > 0"),
    "QUIET_S": _Word(field="times.quiet_s", read=values.seconds, want="seconds > 0"),
    "SETTLE_S": _Word(field="times.settle_s", read=values.seconds, want="seconds > 0"),
    "POLL_S": _Word(field="times.poll_s", read=values.seconds, want="seconds > 0"),
    "LEASE_S": _Word(field="times.lease_s", read=values.seconds, want="seconds > 0"),
    "RENOTIFY_AFTER_S": _Word(field="times.renotify_s", read=values.seconds, want="seconds > 0"),
    "RENOTIFY_TIMES": _Word(
        field="times.renotify_times", read=values.whole(0, 10), want="a whole number from 0 (never) to 10"
    ),
    "MODEL_ENDPOINTS": _Word(
        field="model_endpoints",
        read=values.listed,
        want="base URLs, separated by commas; recorded:FILE replays answers, and keeps those of a URL beside it",
    ),
    "MODEL_NAME": _Word(field="model_name", read=str, want="a model name"),
    "MODEL_API_KEY": _Word(field="model_api_key", read=values.secret, want="a secret"),
    "MODEL_ASK_WHEN": _Word(field="model_ask_when", read=values.one_of(*_WHEN), want=" | ".join(_WHEN)),
    "MODEL_WAKE_WHEN": _Word(field="model_wake_when", read=values.one_of(*_WHEN), want=" | ".join(_WHEN)),
    "MODEL_FOLLOW_UP": _Word(field="model_may_ask", read=values.switch, want="on | off"),
    "MODEL_USD_PER_MILLION_IN": _Word(
        field="model_usd_in", read=values.number(0, 1e6), want="USD per million tokens of questions"
    ),
    "MODEL_USD_PER_MILLION_OUT": _Word(
        field="model_usd_out", read=values.number(0, 1e6), want="USD per million tokens of answers"
    ),
    "SLACK_TOKEN": _Word(field="slack_token", read=values.secret, want="a bot token"),
    "SLACK_SIGNING_SECRET": _Word(field="slack_signing_secret", read=values.secret, want="the app's signing secret"),
    "SLACK_API_URL": _Word(
        field="slack_api_url", read=values.slack_api, want="Slack's API, as https://slack-gov.com/api/"
    ),
    "SLACK_CHANNEL": _Word(field="slack_channel", read=str, want="a channel id"),
    "WEBHOOK_URLS": _Word(field="webhook_urls", read=values.listed, want="https URLs, separated by commas"),
    "WEBHOOK_SECRETS": _Word(
        field="webhook_secrets", read=values.whsecs, want="whsec_ secrets of 24 to 64 bytes, separated by commas"
    ),
    "WEBHOOK_DECIDERS": _Word(
        field="webhook_deciders", read=values.deciders, want="identity=whsec_secret pairs, separated by commas"
    ),
    "PAGERDUTY_ROUTING_KEY": _Word(
        field="pagerduty_routing_key",
        read=values.routing_key,
        want="the integration key of an Events API v2 integration",
    ),
    "PAGERDUTY_URL": _Word(
        field="pagerduty_url",
        read=values.own_address,
        want="PagerDuty's Events API, as https://events.eu.pagerduty.com",
    ),
    "PAGERDUTY_SECRETS": _Word(
        field="pagerduty_secrets", read=values.pagerduty_secrets, want="signing secrets of a v3 webhook, with commas"
    ),
    "NOTIFY_TARGETS": _Word(
        field="notify_targets",
        read=values.notify_targets,
        want="NAME=URL or NAME[EVENT,...]=URL of targets that are only told, separated by white space",
    ),
    "INGEST_SECRETS": _Word(
        field="ingest_secrets", read=values.pairs_of, want="source=secret pairs, separated by commas"
    ),
    "SERVICE_API_KEYS": _Word(
        field="service_api_keys", read=values.pairs_of, want="name=key pairs of watched servers, separated by commas"
    ),
    "HF_TOKEN": _Word(
        field="hub_token", read=values.secret, want="a Hugging Face token, for checkpoints behind a licence"
    ),
    "HF_ENDPOINT": _Word(field="hub_url", read=values.own_address, want="the https:// address of the model hub"),
    "HF_HUB_OFFLINE": _Word(field="hub_offline", read=values.switch, want="on | off: never ask the model hub"),
    "RESTART_COMMAND": _Word(field="restart_command", read=values.command, want="a command, quoted as for a shell"),
    "PUBLIC_URL": _Word(field="public_url", read=str, want="the URL under which people reach the console"),
    "IAP_AUDIENCE": _Word(field="iap_audience", read=str, want="the audience of the IAP assertion"),
    "DECIDE_URL": _Word(field="decide_url", read=values.own_address, want="the https:// address of `decide`"),
    "ID_TOKEN_AUDIENCES": _Word(
        field="id_token_audiences", read=values.listed, want="audiences of operators' ID tokens, separated by commas"
    ),
    "ID_TOKEN_COMMAND": _Word(
        field="id_token_command", read=values.command, want="a quoted command that prints an ID token"
    ),
    "FORM_KEY": _Word(field="form_key", read=values.secret, want="a secret of 32 bytes or more"),
    "BIND": _Word(field="bind", read=lambda raw: str(ip_address(raw)), want="an IP address of this machine"),
    "LEASE": _Word(field="lease", read=lease_name, want="namespace/name of a Lease, without which `up` waits"),
    "LOG_JSON": _Word(field="log_json", read=values.switch, want="on | off"),
    "OTEL_EXPORTER_OTLP_ENDPOINT": _Word(
        field="otlp_endpoint", read=values.or_else(None), want="the address of an OTLP collector; unset sends no traces"
    ),
    "OTEL_EXPORTER_OTLP_PROTOCOL": _Word(
        field="otlp_protocol", read=values.or_else("http/protobuf"), want="http/protobuf"
    ),
    "OTEL_TRACES_EXPORTER": _Word(field="traces_exporter", read=values.or_else("otlp"), want="otlp | none"),
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": _Word(
        field="genai_content",
        read=values.or_else("no_content"),
        want="NO_CONTENT | SPAN_ONLY: whether questions to the model, and its answers, stand in spans",
    ),
}


def inherited() -> dict[str, str]:
    """Return this process's own environment, which a server that we start inherits."""
    return dict(os.environ)  # noqa: TID251 - a server must find what its operator has set


def read_settings(environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Read the settings.

    Args:
        environ: The environment; the process's own when None.
        overrides: Fields that the command line sets.

    Raises:
        SettingsRejected: Every mistake at once; secrets are never shown.
    """
    env = os.environ if environ is None else environ  # noqa: TID251 - the one place that reads it
    fields: dict[str, Any] = {}
    times: dict[str, Any] = {}
    mistakes: list[str] = []
    for name, word in WORDS.items():
        raw = env.get(name)
        if raw is None:
            continue
        try:
            value = word.read(raw)
        except values.Mistake as error:
            mistakes.append(f"{name}: {error}")
            continue
        except ValueError:
            secret = word.read is values.secret or any(part in name for part in ("SECRET", "KEY", "TOKEN"))
            shown = "set to something else" if secret else repr(raw)
            mistakes.append(f"{name} is {shown}, want {word.want}")
            continue
        if word.field.startswith("times."):
            times[word.field.removeprefix("times.")] = value
        else:
            fields[word.field] = value
    settings = Settings(**(fields | {"times": Times(**times)} | overrides)) if not mistakes else None
    mistakes += _together(settings) if settings is not None else []
    if mistakes or settings is None:
        raise SettingsRejected(
            f"{len(mistakes)} setting{'s' * (len(mistakes) > 1)}",
            why="; ".join(mistakes),
            hint="see docs/settings.md, or run: sre-agent doctor",
        )
    return settings


def _together(settings: Settings) -> list[str]:
    """Mistakes that only two settings together make."""
    mistakes = []
    if not settings.embedded and settings.services is None:
        mistakes.append("SERVICES is unset, want the path of services.toml")
    if not settings.embedded and settings.bus == "embedded":
        mistakes.append("BUS is 'embedded' with a cloud store, want pubsub:<project>")
    for name, key in (("RECEIPT_KEY", settings.receipt_key), ("FORM_KEY", settings.form_key)):
        if key is not None and len(key.get_secret_value()) < 32:
            mistakes.append(f"{name} is too short, want a secret of 32 bytes or more")
    if bool(settings.slack_token) != bool(settings.slack_channel):
        mistakes.append("SLACK_TOKEN and SLACK_CHANNEL go together, one of them is unset")
    if (settings.model_usd_in is None) != (settings.model_usd_out is None):
        mistakes.append("MODEL_USD_PER_MILLION_IN and MODEL_USD_PER_MILLION_OUT go together, one of them is unset")
    if settings.webhook_urls and not settings.webhook_secrets:
        mistakes.append("WEBHOOK_SECRETS is unset, want a secret to sign with what goes to WEBHOOK_URLS")
    return mistakes + _secrets_of_two(settings)


def _secrets_of_two(settings: Settings) -> list[str]:
    """A secret that two hold proves neither of them: each could decide in the other's name."""
    holders: dict[bytes, set[str]] = {}
    for name, secret in settings.webhook_deciders:
        holders.setdefault(webhook_secret(secret.get_secret_value()), set()).add(repr(name))
    for secret in settings.webhook_secrets:
        holders.setdefault(webhook_secret(secret.get_secret_value()), set()).add("whoever gets WEBHOOK_SECRETS")
    shared = sorted(" and ".join(sorted(names)) for names in holders.values() if len(names) > 1)
    return [f"WEBHOOK_DECIDERS: {names} have the same secret, want one for each" for names in shared]
