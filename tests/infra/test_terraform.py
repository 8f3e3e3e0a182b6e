"""The cloud's description and the code say the same, and the check that says so finds every one-sided change."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from agent.app.catalogues import matcher
from agent.core.service import metric_rules
from agent.core.service.services import parse_services
from tests.infra import agreement, terraform_text
from tools.cloud_values import cloud_values
from tools.endpoint_values import EXAMPLE, endpoint_values


def findings_of(infra, code):
    cloud = terraform_text.read_configuration(infra)
    return agreement.findings(cloud, terraform_text.read_configuration(infra / "modules" / "function"), code)


@pytest.fixture(scope="module")
def code(root):
    return agreement.code_of(root)


@pytest.fixture(scope="module")
def cloud(root):
    return terraform_text.read_configuration(root / "infra")


def test_the_cloud_and_the_code_agree(root, code):
    """Entry points, topics, settings, secrets, subscriptions, rights, canary and metrics: no difference."""
    assert findings_of(root / "infra", code) == []


IN_TERRAFORM = {
    "entry point": ("functions.tf", "    on_tick = {", "    on_tock = {"),
    "topic": ("topics.tf", '"sre-incidents"', '"sre-incident"'),
    "binding": ("functions.tf", 'on_alert     = { topic = "alerts"', 'on_alert     = { topic = "log_events"'),
    "setting": ("functions.tf", '"MODEL_WAKE_WHEN"', '"GEMMA_AWAKE"'),
    "common setting": ("functions.tf", "    SERVICES = ", "    WATCHED = "),
    "optional setting": ("variables.tf", '"LEASE_S"', '"LEASES"'),
    "secret": ("secrets.tf", "    MODEL_API_KEY   ", "    GEMMA_API_KEY   "),
    "secret version": ("variables.tf", '"INGEST_SECRETS", ', ""),
    "receipt key": ("secrets.tf", '["decide", "on_decision"]', '["decide", "on_decision", "on_incident"]'),
    "signer": ("keys.tf", 'deciders = ["decide", "on_decision"]', 'deciders = ["decide", "on_decision", "on_tick"]'),
    "control database": ("identities.tf", 'on_incident  = { state = "roles/datastore.user" }', 'on_incident  = { state = "roles/datastore.user", control = "roles/datastore.user" }'),
    "updater": ("identities.tf", 'on_incident = ["roles/run.viewer"]', 'on_incident = ["roles/run.viewer", "updater"]'),
    "role": ("identities.tf", '"roles/monitoring.viewer"]', '"roles/monitoring.admin"]'),
    "permission": ("identities.tf", '"run.services.update",', '"run.services.update", "run.services.setIamPolicy",'),
    "deletion by default": ("variables.tf", "type        = list(string)\n  default     = []\n\n  validation {\n    condition     = alltrue([for name in var.lifecycle_services", 'type        = list(string)\n  default     = ["gemma"]\n\n  validation {\n    condition     = alltrue([for name in var.lifecycle_services'),
    "deletion of all": ("identities.tf", " if contains(var.lifecycle_services, name) }", " }"),
    "deletion and more": ("identities.tf", '["run.services.delete"]', '["run.services.delete", "run.services.create"]'),
    "runtime account": ("identities.tf", 'role               = "roles/iam.serviceAccountUser"\n  member             = module.identity["on_decision"].member', 'role               = "roles/iam.serviceAccountUser"\n  member             = module.identity["on_tick"].member'),
    "open": ("functions.tf", 'on_alert     = { topic = "alerts", open = false', 'on_alert     = { topic = "alerts", open = true'),
    "warm": ("functions.tf", "min = var.decide_warm ? 1 : 0", "min = 0"),
    "warm by default": ("variables.tf", 'most of the monthly price."\n  type        = bool\n  default     = true', 'most of the monthly price."\n  type        = bool\n  default     = false'),
    "another one warm": ("functions.tf", 'ingest = { topic = "", open = true, min = 0', 'ingest = { topic = "", open = true, min = 1'),
    "condition": ("identities.tf", "  condition {\n", "  lifecycle {\n"),
    "deadline": ("functions.tf", "ack_deadline_seconds       = 600", "ack_deadline_seconds       = 10"),
    "attempts": ("functions.tf", "max_delivery_attempts = 20", "max_delivery_attempts = 5"),
    "expiry": ("functions.tf", 'ttl = ""', 'ttl = "2678400s"'),
    "schedule": ("scheduler.tf", '"* * * * *"', '"*/5 * * * *"'),
    "canary": ("scheduler.tf", 'canary_log = "sre-canary"', 'canary_log = "sre-bird"'),
    "metric event": ("metrics.tf", 'jsonPayload.message=\\"canary.received\\"', 'jsonPayload.message=\\"canary.hurt\\"'),
    "metric field": ("metrics.tf", 'value = "since_plan_s"', 'value = "since_ask_s"'),
    "form key": ("secrets.tf", 'FORM_KEY                   = ["console"]', 'FORM_KEY                   = ["console", "ingest"]'),
    "collector's credentials": ("secrets.tf", '"ingest", "console"]', '"ingest"]'),
    "readers": ("secrets.tf", "if contains(keys(var.secret_versions), secret)", ""),
    "credentials among settings": ("functions.tf", '"OTEL_SERVICE_NAME", "OTEL_RESOURCE', '"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_RESOURCE'),
    "sampler": ("functions.tf", '"OTEL_TRACES_SAMPLER",', '"OTEL_TRACES_SAMPLE",'),
    "proof": ("functions.tf", '"ID_TOKEN_AUDIENCES", "IAP_AUDIENCE"]', '"ID_TOKEN_AUDIENCES"]'),
    "console's policy": ("functions.tf", '"PUBLIC_URL", "POLICY", "DECIDE_URL"]', '"PUBLIC_URL", "DECIDE_URL"]'),
    "metric label": ("metrics.tf", 'labels = { phase = "phase", class = "cause" }', 'labels = { phase = "phase", cause = "cause" }'),
    "chart": ("dashboard.tf", 'metric = "sre_plan_seconds"', 'metric = "sre_plans_seconds"'),
    "chart's label": ("dashboard.tf", 'metric = "sre_roll_backs", of = "DELTA", by = "class"', 'metric = "sre_roll_backs", of = "DELTA", by = "cause"'),
    "service name": ("modules/function/main.tf", '"sre-${replace', '"agent-${replace'),
}  # fmt: skip


@pytest.mark.parametrize("change", IN_TERRAFORM.values(), ids=IN_TERRAFORM.keys())
def test_a_change_of_the_cloud_alone_is_found(change, root, code, tmp_path):
    """One thing is renamed or widened in Terraform and not in the code: the check says so."""
    name, before, after = change
    infra = tmp_path / "infra"
    shutil.copytree(root / "infra", infra)
    text = (infra / name).read_text()
    assert before in text, f"{name} no longer holds {before!r}; change this test with it"
    (infra / name).write_text(text.replace(before, after))
    assert findings_of(infra, code) != []


def in_code(code):
    entries = dict(code.entry_points)
    renamed = {("on_event" if name == "on_log_event" else name): topic for name, topic in entries.items()}
    moved = entries | {"on_alert": "sre-incidents"}
    events = {name: fields for name, fields in code.events.items() if name != "incident.moved"}
    less = code.events | {"incident.moved": code.events["incident.moved"] - {"cause"}}
    return {
        "entry point": {"entry_points": renamed},
        "new entry point": {"entry_points": entries | {"on_new": None}},
        "binding": {"entry_points": moved},
        "topic": {"topics": code.topics - {"sre-tick"} | {"sre-tock"}},
        "setting": {"settings": code.settings - {"POLICY"} | {"POLICIES"}},
        "new setting": {"settings": code.settings | {"COLOUR"}},
        "secret": {"secrets": code.secrets | {"MODEL_NAME"}},
        "decider": {"deciders": code.deciders - {"decide"}},
        "canary": {"canary": "sre-bird"},
        "event": {"events": events},
        "field": {"events": less},
        "shown metric": {"shown": code.shown - {"sre_incidents"}},
    }


CODE_CHANGES = (
    "entry point", "new entry point", "binding", "topic", "setting", "new setting", "secret", "decider", "canary", "event",
    "field", "shown metric",
)  # fmt: skip


@pytest.mark.parametrize("name", CODE_CHANGES)
def test_a_change_of_the_code_alone_is_found(name, root, code):
    """One thing is renamed in the code and not in Terraform: the check says so."""
    assert findings_of(root / "infra", dataclasses.replace(code, **in_code(code)[name])) != []


def test_every_code_change_is_tried(code):
    """The list above and the changes are the same."""
    assert set(in_code(code)) == set(CODE_CHANGES)


def test_variables_and_outputs_explain_themselves(root):
    """A newcomer finds a description at each; what is free text has a check."""
    for folder in (root / "infra", *(p for p in (root / "infra" / "modules").iterdir())):
        found = terraform_text.read_configuration(folder)
        for name, body in {**found.variables, **found.outputs}.items():
            assert body.get("description", "").endswith((".", ")")), f"{folder.name}: {name} says nothing"
    checked = {n for n, b in terraform_text.read_configuration(root / "infra").variables.items() if "validation" in b}
    assert {"project", "region", "watched", "sink_filters", "settings", "secret_versions", "alert_emails"} <= checked


def test_generated_values_are_the_variables_terraform_takes(root, cloud):
    """What cloud_values prints has the shape that variables.tf declares."""
    made = cloud_values(parse_services((root / "infra" / "services.example.toml").read_text()))
    assert set(made) <= set(cloud.variables)
    declared = str(cloud.variables["watched"]["type"])
    for service in made["watched"].values():
        assert all(f"'{key}'" in declared or f"{key}:" in declared or key in declared for key in service)


def test_the_endpoints_flags_and_probe_are_those_that_were_computed(root, cloud):
    """gemma.example.tfvars.json holds what fit, advise and the probe's budget say, and nothing that was typed."""
    shown = json.loads((root / "infra" / "gemma.example.tfvars.json").read_text())
    made = endpoint_values(EXAMPLE)
    assert shown == {"gemma_endpoint": made}, "run: python -m tools.endpoint_values > infra/gemma.example.tfvars.json"
    declared = str(cloud.variables["gemma_endpoint"]["type"])
    assert all(key in declared for key in made)
    assert made["probe_period"] * made["probe_count"] <= 1800
    assert made["engine_ready"] >= made["probe_period"] * made["probe_count"]


def test_the_endpoint_module_uses_what_it_is_given(root):
    """Private, one GPU, the model from a bucket, the probe and the flags from the variables."""
    module = terraform_text.read_configuration(root / "infra" / "modules" / "gemma_endpoint")
    service = module.resources["google_cloud_run_v2_service", "this"]["template"][0]
    container = service["containers"][0]
    assert container["startup_probe"][0]["failure_threshold"] == "${var.probe_count}"
    assert "var.flags" in container["args"]
    assert container["resources"][0]["limits"]["nvidia.com/gpu"] == "1"
    assert service["volumes"][0]["gcs"][0]["read_only"] is True
    assert service["scaling"][0]["min_instance_count"] == 0
    assert set(module.of("google_cloud_run_v2_service_iam_member")) == {"caller"}


RULES = {
    "VllmKvCacheNearlyFull": ("vllm:kv_cache_usage_perc > 0.85", "30s"),
    "VllmRequestsWaiting": ("vllm:num_requests_waiting > 0", "30s"),
    "VllmPreemptionsRising": ("increase(vllm:num_preemptions_total[5m]) > 0", "60s"),
}


def test_the_rules_watch_cache_queue_preemptions_and_progress(root):
    """Thresholds as promised; each metric is one that vLLM exposes; Terraform makes a policy of each."""
    groups = yaml.safe_load((root / "infra" / "vllm_rules.yaml").read_text())["groups"]
    rules = {rule["alert"]: rule for rule in groups[0]["rules"]}
    assert {name: (r["expr"], r["for"]) for name, r in rules.items() if name in RULES} == RULES
    hang = rules["VllmNoTokenProgress"]["expr"]
    assert "num_requests_running > 0" in hang
    assert "generation_tokens_total" in hang
    assert 'yamldecode(file("${path.module}/vllm_rules.yaml"))' in (root / "infra" / "alerts.tf").read_text()


def test_the_rules_name_metrics_that_a_recorded_server_exposes(root):
    """Recorded from vLLM 0.32: a renamed metric would never fire."""
    exposed = (root / "tests" / "data" / "vllm-cpu-logs" / "metrics_after_load.prom").read_text()
    for name in set(re.findall(r"vllm:\w+", (root / "infra" / "vllm_rules.yaml").read_text())):
        assert name in exposed, name


def test_an_alert_that_is_trouble_by_itself_is_understood(root):
    """The agent reads a rule's summary as a line; what it is about must be in the failure catalogue."""
    rules = yaml.safe_load((root / "infra" / "vllm_rules.yaml").read_text())["groups"][0]["rules"]
    summaries = {rule["alert"]: rule["annotations"]["summary"] for rule in rules}
    known = {name for name, text in summaries.items() if matcher().line(text) is not None}
    assert known == set(summaries) - {"VllmKvCacheNearlyFull"}  # a full cache alone is a warning, no incident


def test_the_rules_have_the_thresholds_of_the_agents_own_eyes(root):
    """What Prometheus is told and what the agent looks for on a host are the same numbers."""
    assert RULES["VllmKvCacheNearlyFull"][0].endswith(f"> {metric_rules.KV_FULL:g}")
    assert RULES["VllmRequestsWaiting"][1] == f"{metric_rules.WAITING_S:g}s"
    names = {name for names in metric_rules.ALIASES.values() for name in names}
    used = set(re.findall(r"vllm:\w+", (root / "infra" / "vllm_rules.yaml").read_text()))
    assert used <= names


def test_terraform_itself_finds_the_files_well_formed(root, missing):
    """The real parser and formatter; there are no providers here, so nothing is initialised or validated."""
    if shutil.which("terraform") is None:
        missing("the terraform binary")
    done = subprocess.run(
        ["terraform", "fmt", "-check", "-recursive", "-diff", "infra"],
        cwd=root, capture_output=True, text=True, check=False, env={**os.environ, "CHECKPOINT_DISABLE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_checkov_finds_nothing(root):
    """0 failed; what is skipped carries its reason. `make checkov` sets it up."""
    found = [root / ".venv-checkov" / "bin" / "checkov", Path(shutil.which("checkov") or "/nowhere")]
    tool = next((path for path in found if path.is_file()), None)
    if tool is None:
        pytest.skip("checkov is not installed; run: make checkov")
    done = subprocess.run(
        [tool, "-d", "infra", "--framework", "terraform", "-o", "json", "--quiet"],
        cwd=root, capture_output=True, text=True, check=False, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )  # fmt: skip
    report = json.loads(done.stdout)
    assert report["summary"]["failed"] == 0, [
        (c["check_id"], c["resource"]) for c in report["results"]["failed_checks"]
    ]
    assert report["summary"]["parsing_errors"] == 0
    assert report["summary"]["passed"] > 30


def test_every_skipped_check_carries_its_reason(root):
    """A skip without a sentence is a hole."""
    skips = re.findall(r"#checkov:skip=(\w+):?(.*)", "".join(p.read_text() for p in (root / "infra").rglob("*.tf")))
    assert skips
    assert all(len(reason.strip()) > 30 for _, reason in skips)


def test_the_guide_to_traces_names_the_settings_that_terraform_takes(root):
    """It refuses all others of OpenTelemetry, which a reader of that page would try first."""
    page = (root / "docs" / "telemetry.md").read_text()
    (told,) = re.findall(r"There Terraform takes (.*?) alone, and refuses\s+every other `OTEL_\*`", page, re.DOTALL)
    taken = re.findall(r'"(OTEL_\w+)"', (root / "infra" / "variables.tf").read_text())
    assert sorted([*re.findall(r"`(\w+)`", told), agreement.HEADERS]) == sorted(taken)
    assert f"{agreement.HEADERS}=" in page.split(told)[1], "its way into the cloud is another one"
