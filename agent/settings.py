"""The settings: environment variables turned into valid values, read once, all mistakes reported at once."""

import os
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import Field, SecretStr

from agent import setting_values as values
from agent.core.decision.signed_request import webhook_secret
from agent.core.diagnosis.model_request import ModelPrice
from agent.core.incident.times import Times
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
        platform: Where services run, such as ``cloud_run:PROJECT``; ``VARIABLES`` has them all.
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


class _Variable(NamedTuple):
    """One environment variable: where it goes, how it is read, what it wants."""

    field: str
    read: Callable[[str], Any]
    want: str


_BY_CREDENTIALS = ("kubernetes", "kubernetes:", "ec2", "ec2:")
_WHEN = ("always", "uncertain", "never")
_STAND_IN = "127.0.0.1:port of a stand-in on this machine, for tests and rehearsals"

VARIABLES: Final[dict[str, _Variable]] = {
    "STORE": _Variable("store", values.scheme("sqlite:", "firestore:"), "sqlite:<folder> | firestore:<project>"),
    "BUS": _Variable("bus", values.scheme("embedded", "pubsub:"), "embedded | pubsub:<project>"),
    "PUBSUB_EMULATOR_HOST": _Variable("pubsub_emulator", values.host_and_port, "host:port of an emulator"),
    "PLATFORM": _Variable(
        "platform",
        values.scheme("rehearsal:", "cloud_run:", *_BY_CREDENTIALS, "container_apps:", "tpu_vm:", "host"),
        "rehearsal:<folder> | cloud_run:<project> | kubernetes[:<context>] | ec2[:<profile>] | "
        "container_apps:<subscription> | tpu_vm:<project> | host",
    ),
    "CLOUD_RUN_EMULATOR_HOST": _Variable("cloud_run_emulator", values.loopback, _STAND_IN),
    "TPU_EMULATOR_HOST": _Variable("tpu_emulator", values.loopback, _STAND_IN),
    "CLOUD_LOGGING_EMULATOR_HOST": _Variable("logging_emulator", values.loopback, _STAND_IN),
    "CONTAINER_APPS_LOG_STREAM": _Variable(
        "container_apps_log_stream",
        values.switch,
        "on | off: read replicas' log streams too; its right could open a shell, see docs/container-apps.md",
    ),
    "SERVICES": _Variable("services", values.file, "the path of services.toml"),
    "POLICY": _Variable("policy", values.file, "the path of policy.toml"),
    "RECEIPT_KMS": _Variable("receipt_kms", values.kms_key, "projects/.../cryptoKeyVersions/N, a MAC key"),
    "RECEIPT_KEY": _Variable("receipt_key", values.secret, "a secret of 32 bytes or more"),
    "KILL_SWITCH": _Variable("kill_switch", values.switch, "on | off"),
    "REHEARSAL_COMPRESSION": _Variable("compression", values.number(1, 1e6), "a factor >= 1"),
    "REHEARSE_BY_FIT": _Variable("rehearse_by_fit", values.switch, "on | off"),
    "APPROVAL_TTL_S": _Variable("times.approval_s", values.seconds, "seconds > 0"),
    "COOL_OFF_S": _Variable("times.cool_off_s", values.seconds, "seconds > 0"),
    "VERIFY_WINDOW_S": _Variable("times.verify_s", values.seconds, "seconds > 0"),
    "QUIET_S": _Variable("times.quiet_s", values.seconds, "seconds > 0"),
    "SETTLE_S": _Variable("times.settle_s", values.seconds, "seconds > 0"),
    "POLL_S": _Variable("times.poll_s", values.seconds, "seconds > 0"),
    "LEASE_S": _Variable("times.lease_s", values.seconds, "seconds > 0"),
    "RENOTIFY_AFTER_S": _Variable("times.renotify_s", values.seconds, "seconds > 0"),
    "RENOTIFY_TIMES": _Variable("times.renotify_times", values.whole(0, 10), "a whole number from 0 (never) to 10"),
    "MODEL_ENDPOINTS": _Variable(
        "model_endpoints",
        values.listed,
        "base URLs, separated by commas; recorded:FILE replays answers, and keeps those of a URL beside it",
    ),
    "MODEL_NAME": _Variable("model_name", str, "a model name"),
    "MODEL_API_KEY": _Variable("model_api_key", values.secret, "a secret"),
    "MODEL_ASK_WHEN": _Variable("model_ask_when", values.one_of(*_WHEN), " | ".join(_WHEN)),
    "MODEL_WAKE_WHEN": _Variable("model_wake_when", values.one_of(*_WHEN), " | ".join(_WHEN)),
    "MODEL_FOLLOW_UP": _Variable("model_may_ask", values.switch, "on | off"),
    "MODEL_USD_PER_MILLION_IN": _Variable("model_usd_in", values.number(0, 1e6), "USD per million tokens of questions"),
    "MODEL_USD_PER_MILLION_OUT": _Variable("model_usd_out", values.number(0, 1e6), "USD per million tokens of answers"),
    "SLACK_TOKEN": _Variable("slack_token", values.secret, "a bot token"),
    "SLACK_SIGNING_SECRET": _Variable("slack_signing_secret", values.secret, "the app's signing secret"),
    "SLACK_API_URL": _Variable("slack_api_url", values.slack_api, "Slack's API, as https://slack-gov.com/api/"),
    "SLACK_CHANNEL": _Variable("slack_channel", str, "a channel id"),
    "WEBHOOK_URLS": _Variable("webhook_urls", values.listed, "https URLs, separated by commas"),
    "WEBHOOK_SECRETS": _Variable(
        "webhook_secrets", values.whsecs, "whsec_ secrets of 24 to 64 bytes, separated by commas"
    ),
    "WEBHOOK_DECIDERS": _Variable(
        "webhook_deciders", values.deciders, "identity=whsec_secret pairs, separated by commas"
    ),
    "PAGERDUTY_ROUTING_KEY": _Variable(
        "pagerduty_routing_key", values.routing_key, "the integration key of an Events API v2 integration"
    ),
    "PAGERDUTY_URL": _Variable(
        "pagerduty_url", values.own_address, "PagerDuty's Events API, as https://events.eu.pagerduty.com"
    ),
    "PAGERDUTY_SECRETS": _Variable(
        "pagerduty_secrets", values.pagerduty_secrets, "signing secrets of a v3 webhook, with commas"
    ),
    "NOTIFY_TARGETS": _Variable(
        "notify_targets",
        values.notify_targets,
        "NAME=URL or NAME[EVENT,...]=URL of targets that are only told, separated by white space",
    ),
    "INGEST_SECRETS": _Variable("ingest_secrets", values.pairs_of, "source=secret pairs, separated by commas"),
    "SERVICE_API_KEYS": _Variable(
        "service_api_keys", values.pairs_of, "name=key pairs of watched servers, separated by commas"
    ),
    "HF_TOKEN": _Variable("hub_token", values.secret, "a Hugging Face token, for checkpoints behind a licence"),
    "HF_ENDPOINT": _Variable("hub_url", values.own_address, "the https:// address of the model hub"),
    "HF_HUB_OFFLINE": _Variable("hub_offline", values.switch, "on | off: never ask the model hub"),
    "RESTART_COMMAND": _Variable("restart_command", values.command, "a command, quoted as for a shell"),
    "PUBLIC_URL": _Variable("public_url", str, "the URL under which people reach the console"),
    "IAP_AUDIENCE": _Variable("iap_audience", str, "the audience of the IAP assertion"),
    "DECIDE_URL": _Variable("decide_url", values.own_address, "the https:// address of `decide`"),
    "ID_TOKEN_AUDIENCES": _Variable(
        "id_token_audiences", values.listed, "audiences of operators' ID tokens, separated by commas"
    ),
    "ID_TOKEN_COMMAND": _Variable("id_token_command", values.command, "a quoted command that prints an ID token"),
    "FORM_KEY": _Variable("form_key", values.secret, "a secret of 32 bytes or more"),
    "BIND": _Variable("bind", lambda raw: str(ip_address(raw)), "an IP address of this machine"),
    "LEASE": _Variable("lease", lease_name, "namespace/name of a Lease, without which `up` waits"),
    "LOG_JSON": _Variable("log_json", values.switch, "on | off"),
    "OTEL_EXPORTER_OTLP_ENDPOINT": _Variable(
        "otlp_endpoint", values.or_else(None), "the address of an OTLP collector; unset sends no traces"
    ),
    "OTEL_EXPORTER_OTLP_PROTOCOL": _Variable("otlp_protocol", values.or_else("http/protobuf"), "http/protobuf"),
    "OTEL_TRACES_EXPORTER": _Variable("traces_exporter", values.or_else("otlp"), "otlp | none"),
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": _Variable(
        "genai_content",
        values.or_else("no_content"),
        "NO_CONTENT | SPAN_ONLY: whether questions to the model, and its answers, stand in spans",
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
    for name, variable in VARIABLES.items():
        raw = env.get(name)
        if raw is None:
            continue
        try:
            value = variable.read(raw)
        except values.Mistake as error:
            mistakes.append(f"{name}: {error}")
            continue
        except ValueError:
            secret = variable.read is values.secret or any(part in name for part in ("SECRET", "KEY", "TOKEN"))
            shown = "set to something else" if secret else repr(raw)
            mistakes.append(f"{name} is {shown}, want {variable.want}")
            continue
        if variable.field.startswith("times."):
            times[variable.field.removeprefix("times.")] = value
        else:
            fields[variable.field] = value
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
