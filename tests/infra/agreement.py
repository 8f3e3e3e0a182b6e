"""Where the cloud's description and the code must say the same, as a list of what they say differently."""

import ast
import re
from dataclasses import dataclass

from opentelemetry.sdk import environment_variables as sdk

from agent.app.app import DECIDERS
from agent.core.intake.origin import CANARY_LOG
from agent.entrypoints.metrics.catalogue import HISTORY, PRESENT
from agent.ports.bus import Topic
from agent.ports.stage_context import Owner
from agent.settings import VARIABLES, Settings

# Settings that an installation in the cloud does not choose: of machines, or made by Terraform itself.
MADE = {"STORE", "BUS", "PLATFORM", "SERVICES", "POLICY", "IAP_AUDIENCE", "RECEIPT_KMS", "DECIDE_URL"}
ELSEWHERE = {
    "PUBSUB_EMULATOR_HOST", "CLOUD_RUN_EMULATOR_HOST", "CLOUD_LOGGING_EMULATOR_HOST", "REHEARSAL_COMPRESSION",
    "TPU_EMULATOR_HOST", "REHEARSE_BY_FIT", "RESTART_COMMAND", "ID_TOKEN_COMMAND", "LOG_JSON", "BIND", "LEASE",
    "CONTAINER_APPS_LOG_STREAM", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_PROTOCOL", "HF_TOKEN", "HF_ENDPOINT",
    "HF_HUB_OFFLINE",
}  # fmt: skip
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"  # the collector's credentials
OF_THE_SDK = {name for name in vars(sdk) if name.startswith("OTEL_")}
READS_UNTRUSTED = {"on_log_event", "on_alert", "on_incident", "ingest", "console"}
PROOFS = {
    "decide": {"POLICY", "DECIDE_URL", "ID_TOKEN_AUDIENCES", "IAP_AUDIENCE"},
    "console": {"POLICY", "DECIDE_URL", "IAP_AUDIENCE", "PUBLIC_URL"},
}
ROLES = {
    "roles/pubsub.publisher", "roles/pubsub.subscriber", "roles/datastore.user", "roles/datastore.viewer",
    "roles/run.viewer", "roles/run.invoker", "roles/monitoring.viewer", "roles/storage.objectViewer",
    "roles/iam.serviceAccountUser", "roles/artifactregistry.reader", "roles/secretmanager.secretAccessor",
    "roles/cloudbuild.builds.builder", "roles/logging.logWriter", "roles/cloudkms.cryptoKeyEncrypterDecrypter",
    "roles/iap.httpsResourceAccessor", "roles/cloudkms.signerVerifier",
}  # fmt: skip
PERMISSIONS = {
    "run.services.get", "run.services.update", "run.revisions.get", "run.revisions.list", "run.operations.get",
    "logging.logEntries.list", "run.services.delete",
}  # fmt: skip

LABELS_SHOWN = {metric.name: metric.labels for metric in (*HISTORY, *PRESENT)}  # of what has the same name in both


@dataclass(frozen=True, kw_only=True)
class Code:
    """What the code expects."""

    entry_points: dict  # name to the topic that is pushed to it, or None
    topics: frozenset
    settings: frozenset
    secrets: frozenset
    deciders: frozenset
    canary: str
    events: dict  # name of a log event to the fields that are written with it
    shown: frozenset  # names of /metrics


def code_of(root):
    """Read what the code expects."""
    entries = {owner.value: None for owner in Owner}
    for path in sorted((root / "functions").glob("*.py")):
        tree = ast.parse(path.read_text())
        names = [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.decorator_list]
        assert names == [path.stem], f"{path.name} must define its own name"
        topic = re.search(r"push\(request, Topic\.(\w+)\)", path.read_text())
        entries[path.stem] = Topic[topic.group(1)].value if topic else None
    text = "\n".join(p.read_text() for p in sorted((root / "agent").rglob("*.py")))
    return Code(
        entry_points=entries,
        topics=frozenset(t.value for t in Topic),
        settings=frozenset(VARIABLES),
        secrets=frozenset(name for name, variable in VARIABLES.items() if _is_secret(variable.field)),
        deciders=frozenset(owner.value for owner in DECIDERS),
        canary=CANARY_LOG,
        events=_events(text),
        shown=frozenset(metric.name for metric in (*HISTORY, *PRESENT)),
    )


def _is_secret(field):
    kind = "" if "." in field else str(Settings.model_fields[field].annotation)
    return "SecretStr" in kind or "NotifyTarget" in kind  # a target's address holds its secret


def _events(text):
    found = {}
    for name, rest in re.findall(r'(?:log\.\w+|write)\(\s*"([a-z_]+\.[a-z_]+)",?(.*?)\)\n', text, re.DOTALL):
        found.setdefault(name, set()).update(re.findall(r"(\w+)=", rest))
        if "**about" in rest:
            found[name] |= {"incident", "service", "run", "stage"}
    return found


def findings(cloud, function, code):
    """Return every difference, one sentence each.

    Args:
        cloud: The root configuration.
        function: The configuration of modules/function.
        code: What the code expects.
    """
    return [
        *_functions(cloud, code),
        *_settings(cloud, code),
        *_messages(cloud, function, code),
        *_rights(cloud, code),
        *_metrics(cloud, code),
    ]


WARM = "${var.decide_warm ? 1 : 0}"


def _functions(cloud, code):
    functions, topics = cloud.locals["functions"], cloud.locals["topics"]
    for name in sorted(set(functions) ^ set(code.entry_points)):
        yield f"function {name} stands on one side only"
    if sorted(topics.values()) != sorted(code.topics):
        yield f"topics differ: {sorted(set(topics.values()) ^ set(code.topics))}"
    for name, entry in functions.items():
        pushed = topics.get(entry["topic"]) if entry["topic"] else None
        if name in code.entry_points and pushed != code.entry_points[name]:
            yield f"{name} is bound to {pushed}, the code reads {code.entry_points[name]}"
        if entry["min"] != (WARM if name == "decide" else 0):
            yield f"{name}: only decide, which answers Slack within three seconds, is kept warm"
        if entry["open"] and name not in {"decide", "ingest"}:
            yield f"{name} is open to everybody"
    if cloud.variables["decide_warm"].get("default") is not True:
        yield "decide is not kept warm by default: a press in Slack would wait for its start"


def _settings(cloud, code):
    functions, secrets = cloud.locals["functions"], cloud.locals["secrets"]
    told = {key for entry in functions.values() for key in entry["settings"]}
    told |= {*cloud.locals["times"], *cloud.locals["traces"]}
    optional = set(re.findall(r'"([A-Z][A-Z0-9_]+)"', _conditions(cloud, "settings")))
    given = told | set(cloud.locals["common"])
    for name in sorted(given - code.settings - OF_THE_SDK):
        yield f"setting {name} is not one the code reads"
    for name in sorted(code.settings - code.secrets - given - ELSEWHERE):
        yield f"setting {name} is given to no function"
    if optional != told - MADE:
        yield f"var.settings allows what no function is told, or not what one is: {sorted(optional ^ (told - MADE))}"
    known = code.secrets - ELSEWHERE | {HEADERS}
    if set(secrets) != known:
        yield f"secrets differ: {sorted(set(secrets) ^ known)}"
    if set(secrets.get(HEADERS, ())) != set(functions):
        yield f"every function sends traces, and the collector's credentials are read by {secrets.get(HEADERS)}"
    if "var.secret_versions" not in str(cloud.locals["readers"]):
        yield "secrets may be read that have no value"
    versions = set(re.findall(r'"([A-Z][A-Z0-9_]+)"', _conditions(cloud, "secret_versions")))
    if versions != known:
        yield f"var.secret_versions allows other secrets: {sorted(versions ^ known)}"
    if given & known:
        yield f"{sorted(given & known)} are secrets and stand among the settings"


def _conditions(cloud, variable):
    return "".join(str(rule["condition"]) for rule in cloud.variables[variable].get("validation", []))


def _messages(cloud, function, code):
    push = cloud.resources["google_pubsub_subscription", "push"]
    wanted = {"ack_deadline_seconds": 600, "retry_policy": ("10s", "600s"), "attempts": 20, "ttl": ""}
    said = {
        "ack_deadline_seconds": push["ack_deadline_seconds"],
        "retry_policy": (push["retry_policy"][0]["minimum_backoff"], push["retry_policy"][0]["maximum_backoff"]),
        "attempts": push["dead_letter_policy"][0]["max_delivery_attempts"],
        "ttl": push["expiration_policy"][0]["ttl"],
    }
    for key, value in wanted.items():
        if value != said[key]:
            yield f"subscriptions: {key} is {said[key]!r}, the design says {value!r}"
    if "oidc_token" not in push["push_config"][0]:
        yield "subscriptions push without a token"
    tick = cloud.resources["google_cloud_scheduler_job", "tick"]
    if tick["schedule"] != "* * * * *" or 'module.function["on_tick"]' not in tick["http_target"][0]["uri"]:
        yield "the scheduler does not wake on_tick once a minute"
    if cloud.locals["canary_log"] != code.canary:
        yield f"the canary is written to {cloud.locals['canary_log']}, intake hears {code.canary}"
    deployed = function.resources["google_cloudfunctions2_function", "this"]
    if deployed["build_config"][0]["entry_point"] != "${var.entry_point}" or deployed["name"] != OWN_NAME:
        yield "the function module renames what it deploys"


OWN_NAME = 'sre-${replace(var.entry_point, "_", "-")}'


def _rights(cloud, code):
    table = cloud.locals
    for name, databases in table["databases_of"].items():
        if "control" in databases and name not in code.deciders:
            yield f"{name} may write the control database"
    for name, rights in table["services_of"].items():
        if "updater" in rights and name != "on_decision":
            yield f"{name} may change a service"
        if name in READS_UNTRUSTED and set(rights) - {"roles/run.viewer"}:
            yield f"{name} reads untrusted text and may do more than look: {rights}"
    if set(table["services_of"]["on_tick"]) != {"roles/run.viewer", "roles/run.invoker"}:
        yield "on_tick must view and send one completion, and nothing else"
    if "logs" in {role for name, roles in table["projects_of"].items() for role in roles if name != "on_incident"}:
        yield "only on_incident reads logs"
    if set(table["secrets"]["RECEIPT_KEY"]) != code.deciders:
        yield f"the receipt key is read by {table['secrets']['RECEIPT_KEY']}"
    if table["secrets"]["FORM_KEY"] != ["console"]:
        yield f"the key of the console's forms is read by {table['secrets']['FORM_KEY']}"
    for name, wanted in PROOFS.items():
        for setting in sorted(wanted - set(table["functions"][name]["settings"])):
            yield f"{name} is not told {setting}: nobody could decide there"
    signing = {name for name, entry in table["functions"].items() if "RECEIPT_KMS" in entry["settings"]}
    if not set(table["deciders"]) == signing == set(code.deciders):
        yield f"receipts are signed by {sorted(signing)}, the key lets {table['deciders']}"
    for holder, tables in (("publishes", table["publishes"]), ("databases_of", table["databases_of"])):
        for name in sorted(set(tables) - set(table["functions"])):
            yield f"{holder} names {name}, which is no function"
    yield from _roles(cloud)
    yield from _lifecycle(cloud)


def _lifecycle(cloud):
    """What deletes is opt-in, granted on services by name to the executor alone, and deletes only."""
    if cloud.variables["lifecycle_services"].get("default") != []:
        yield "services may be deleted without anybody having asked for it"
    if cloud.locals["lifecycle_permissions"] != ["run.services.delete"]:
        yield f"the role of a lifecycle holds {cloud.locals['lifecycle_permissions']}"
    granted = cloud.resources["google_cloud_run_v2_service_iam_member", "lifecycle"]
    if "contains(var.lifecycle_services, name)" not in str(granted["for_each"]):
        yield "deletion is granted on services that nobody named"
    if granted["member"] != '${module.identity["on_decision"].member}':
        yield "somebody else than on_decision may delete a service"


def _roles(cloud):
    granted = {p for key in ("updater", "logs", "operations", "lifecycle") for p in cloud.locals[f"{key}_permissions"]}
    if granted - PERMISSIONS:
        yield f"own roles hold more than is needed: {sorted(granted - PERMISSIONS)}"
    text = [str(body) for (kind, _), body in cloud.resources.items() if "_iam_" in kind and "custom_role" not in kind]
    tables = [str(cloud.locals[key]) for key in ("databases_of", "services_of", "projects_of")]
    for role in sorted(set(re.findall(r"roles/[\w.]+", " ".join(text + tables))) - ROLES):
        yield f"{role} is on no list"
    for (kind, name), body in cloud.resources.items():
        if kind in {"google_project_iam_binding", "google_project_iam_policy"}:
            yield f"{kind}.{name} would take rights from others"
        if "allUsers" in str(body) and (kind, name) != ("google_cloud_run_v2_service_iam_member", "open"):
            yield f"{kind}.{name} is open to everybody"
    acting = cloud.resources["google_service_account_iam_member", "runtime"]["member"]
    if acting != '${module.identity["on_decision"].member}':
        yield f"{acting} may act as the services' accounts"
    if "condition" not in cloud.resources["google_project_iam_member", "database"]:
        yield "rights on one database hold for every database"


def _charts(cloud):
    counters, durations = cloud.locals["counters"], cloud.locals["durations"]
    for chart in cloud.locals["charts"]:
        if chart["of"] not in cloud.locals["joined"]:
            yield f"chart {chart['title']} joins its points in no known way"
        if not chart["own"]:
            continue
        metric = (durations if chart["of"] == "SECONDS" else counters).get(chart["metric"])
        if metric is None:
            yield f"chart {chart['title']} shows {chart['metric']}, which is not counted so"
        elif chart["by"] and chart["by"] not in metric["labels"]:
            yield f"chart {chart['title']} is split by {chart['by']}, which {chart['metric']} has not"


def _metrics(cloud, code):
    for name, metric in {**cloud.locals["counters"], **cloud.locals["durations"]}.items():
        for event in re.findall(r'jsonPayload\.message="([^"]+)"', metric["filter"]):
            if event not in code.events:
                yield f"metric {name} counts {event}, which the code does not write"
                continue
            fields = {*metric["labels"].values(), *([metric["value"]] if "value" in metric else [])}
            if fields - code.events[event]:
                yield f"metric {name} wants {sorted(fields - code.events[event])} of {event}"
    for name, metric in cloud.locals["counters"].items():
        if set(metric["labels"]) - set(LABELS_SHOWN.get(name, metric["labels"])):
            yield f"{name} has other labels than in /metrics"
    yield from _charts(cloud)
    if "sre_incidents" not in code.shown:
        yield "/metrics calls incidents otherwise"
