"""A real Prometheus scrapes the running agent; a real Alertmanager tells it of alerts, and of their end."""

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import structlog

from agent.app import App, build_app
from agent.core.decision.decision import Channel, Choice, Person
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.entrypoints.cli.commands.up import console_server
from agent.entrypoints.console.serve import claim
from agent.entrypoints.metrics.catalogue import HISTORY, PRESENT, Kind
from agent.entrypoints.service import Ticker, handlers, publish_example
from agent.errors import SreError
from agent.ports.control import KillSwitch
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import read_settings
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from tests.free_port import free_port
from tests.prometheus import Exporter, Prometheus, alertmanager, program, prometheus, read
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.prometheus, pytest.mark.xdist_group("prometheus")]

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy" / "prometheus"
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"
FAILED, ALERTED = "gemma4-26b-qat-l4", "gemma4-chat"
SECRET = "0123456789abcdef0123"
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "sre-agent.json").read_text())
BUSY = 'vllm:kv_cache_usage_perc{{model_name="m"}} {usage}\n'
DASHBOARD_VARIABLES = json.dumps(DASHBOARD["templating"])
VARIABLES = {"$__range": "1h", "$__rate_interval": "1m", "$service": ".*"}


@dataclass(frozen=True, kw_only=True)
class Site:
    """An agent that runs, what watches it, and a vLLM server whose figures a test sets."""

    app: App
    prometheus: Prometheus
    server: Exporter

    def incidents(self, service: str) -> tuple[Incident, ...]:
        return self.app.store.incidents(Query(service=service))

    def phase(self, service: str) -> Phase | None:
        found = self.incidents(service)
        return found[0].phase if found else None


def quick(text: str) -> str:
    """The same configuration with waits of a test: nothing else is changed."""
    text = re.sub(r"scrape_interval: \w+", "scrape_interval: 1s", text)  # and as long a scrape may take
    text = re.sub(r"(evaluation_interval|group_interval): \w+", r"\1: 200ms", text)
    text = re.sub(r"( +)interval: 30s", r"\1interval: 200ms", text)
    return re.sub(r"(group_wait|for): \w+", r"\1: 0s", text)


def configured(folder: Path, *, agent: int, server: int, alerts: int) -> tuple[Path, Path]:
    """Write the configurations of deploy/prometheus/ for these ports."""
    (folder / "sre-agent.rules.yml").write_text(quick((DEPLOY / "sre-agent.rules.yml").read_text()))
    (folder / "vllm_rules.yaml").write_text(quick((ROOT / "infra" / "vllm_rules.yaml").read_text()))
    scrape = quick((DEPLOY / "prometheus.yml").read_text()).replace("../../infra/", "")
    for port, ours in ((9093, alerts), (8080, agent), (8000, server)):
        assert f"127.0.0.1:{port}" in scrape
        scrape = scrape.replace(f"127.0.0.1:{port}", f"127.0.0.1:{ours}")
    scrape = scrape.replace(f"service: {FAILED}", f"service: {ALERTED}")
    (folder / "prometheus.yml").write_text(scrape)
    routes = quick((DEPLOY / "alertmanager.yml").read_text())
    routes = routes.replace("127.0.0.1:8080", f"127.0.0.1:{agent}").replace(
        "credentials: SECRET", f"credentials: {SECRET}"
    )
    (folder / "alertmanager.yml").write_text(routes)
    return folder / "prometheus.yml", folder / "alertmanager.yml"


def agent(stack: ExitStack, folder: Path) -> tuple[App, int]:
    """Start what `sre-agent up` starts, in this process."""
    text = (EXAMPLE / "services.toml").read_text()
    other = text.replace(FAILED, ALERTED).replace('scenario = "scenario.toml"', "")
    assert FAILED in text
    (folder / "services.toml").write_text(text.replace('"scenario.toml"', f'"{EXAMPLE / "scenario.toml"}"') + other)
    environ = {
        "STORE": f"sqlite:{folder / 'state'}", "PLATFORM": f"rehearsal:{EXAMPLE}", "REHEARSAL_COMPRESSION": "400",
        "SERVICES": str(folder / "services.toml"), "INGEST_SECRETS": f"alertmanager={SECRET}",
        "MODEL_USD_PER_MILLION_IN": "1", "MODEL_USD_PER_MILLION_OUT": "4", "APPROVAL_TTL_S": "86400",
    }  # fmt: skip
    app = build_app(read_settings(environ))
    held = stack.enter_context(claim(0))
    server = console_server(app, held)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stack.callback(server.shutdown)
    pool, ticker = app.worker(handlers(app), threads=2), Ticker(app, every_s=0.2)
    pool.start()
    stack.callback(pool.stop, timeout_s=20)
    ticker.start()
    stack.callback(ticker.stop)
    return app, held.getsockname()[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    for name in ("prometheus", "alertmanager"):
        program(name)
    folder = tmp_path_factory.mktemp("prometheus")
    with ExitStack() as stack:
        stack.callback(structlog.reset_defaults)
        server = Exporter()
        stack.callback(server.close)
        server.text = BUSY.format(usage=0.2)
        app, port = agent(stack, folder)
        alerts = free_port()
        scrape, routes = configured(folder, agent=port, server=server.port, alerts=alerts)
        stack.enter_context(alertmanager(folder, routes, alerts))
        yield Site(app=app, prometheus=stack.enter_context(prometheus(folder, scrape)), server=server)


def approve(app: App) -> None:
    """Approve whatever is asked, as somebody at the console would."""
    for incident in app.store.incidents(Query(open_only=True)):
        if incident.phase is Phase.ASKED and incident.service == FAILED and incident.plan is not None:
            word = DecisionRequest(
                plan=incident.plan.id,
                answer=Choice.APPROVE,
                by=Person(who="ada", channel=Channel.COMMAND_LINE, verified=False),
            )
            try:
                plan_to_decision(app.contexts[Owner.DECIDE], word)
            except SreError:
                continue


@pytest.fixture(scope="module")
def recovered(site) -> Site:
    """One incident was worked on from its first line to its recovery, and Prometheus has seen that."""
    until(lambda: site.prometheus.value("sre_history_counted") == 1)
    publish_example(site.app, EXAMPLE)

    def over() -> bool:
        approve(site.app)
        return site.phase(FAILED) is Phase.RESOLVED

    until(over, lambda: str(site.phase(FAILED)), limit_s=90)
    seen = 'sre_incidents_ended_total{outcome="resolved"} > 0'
    until(lambda: site.prometheus.query(seen), lambda: str(site.prometheus.query("sre_incidents_ended_total")))
    return site


@pytest.mark.journey
def test_an_alert_of_a_server_opens_an_incident_and_its_end_closes_it(site):
    """Rule in Prometheus, Alertmanager's webhook with its secret, an incident; then the figure falls, and all is well."""
    assert site.phase(ALERTED) is None
    site.server.text = BUSY.format(usage=0.97)
    until(lambda: site.phase(ALERTED) is not None, lambda: str(site.prometheus.api("alerts")), limit_s=60)
    site.server.text = BUSY.format(usage=0.2)
    until(lambda: site.phase(ALERTED) is Phase.SELF_RECOVERED, lambda: str(site.phase(ALERTED)), limit_s=60)
    (incident,) = site.incidents(ALERTED)
    assert "KV cache usage is above 85%" in " ".join(signal.line for signal in incident.correlated)


def test_what_prometheus_read_is_what_happened(recovered):
    ask = recovered.prometheus.value
    one = f'{{service="{FAILED}"}}'
    assert ask(f"sre_incidents_opened_total{one}") == 1
    assert ask(f'sre_decisions_total{{service="{FAILED}",answer="approved"}}') >= 1
    assert ask(f'sre_verifications_total{{service="{FAILED}",verdict="RECOVERED"}}') == 1
    assert ask(f'sre_incidents_classified_total{{service="{FAILED}",class="startup_probe_failed"}}') == 1
    (incident,) = recovered.incidents(FAILED)
    took_s = (incident.phase_at - incident.opened_at).total_seconds()
    assert ask(f"sre_recovery_seconds_sum{one}") == pytest.approx(took_s, abs=0.01)
    assert ask(f"increase(sre_recovery_seconds_count{one}[1h])") > 0, "an increase is seen, for the series began at 0"


def expressions() -> list[tuple[str, str]]:
    return [(panel["title"], target["expr"]) for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]


def plain(expression: str) -> str:
    """What Grafana sends for all services and the last hour."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def test_every_panel_shows_something_after_an_incident(recovered):
    """Open incidents by phase has none then, and no service of the example was described, so that drift is unknown."""
    empty = {title for title, text in expressions() if not _numbers(recovered.prometheus.query(plain(text)))}
    assert empty <= {"Open incidents by phase", "Drift by service"}


def _numbers(found: list[dict]) -> list[float]:
    values = [float(row["value"][1]) for row in found]
    return [value for value in values if value == value]


def test_the_rules_are_loaded_healthy_and_fire_on_what_they_say(recovered):
    groups = {group["name"]: group["rules"] for group in recovered.prometheus.api("rules")["groups"]}
    assert {rule["health"] for rules in groups.values() for rule in rules} == {"ok"}
    assert not [alert for alert in recovered.prometheus.api("alerts")["alerts"] if "sre_agent" in alert["labels"]]
    app = recovered.app
    app.control.set_kill_switch(KillSwitch(on=True, by="ada", why="a test", at=app.clock.now()))
    try:
        until(lambda: recovered.prometheus.query('ALERTS{alertname="SreAgentKillSwitchOn",alertstate="firing"}'))
    finally:
        app.control.set_kill_switch(KillSwitch(on=False, by="ada", why="", at=app.clock.now()))


def test_promtool_finds_nothing_to_say():
    """Configurations and rules as they are committed, read by their own programs; the exposition too."""
    checks = (
        [program("promtool"), "check", "config", str(DEPLOY / "prometheus.yml")],
        [program("amtool"), "check-config", str(DEPLOY / "alertmanager.yml")],
    )
    for words in checks:
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_rules_page_about_what_happened_and_nothing_else():
    """A service that leaves services.toml or comes back is no event; an escalation is one, whoever watches the service."""
    words = [
        program("promtool"),
        "test",
        "rules",
        str(ROOT / "tests" / "data" / "prometheus" / "sre-agent.rules.test.yml"),
    ]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_promtool_lints_the_exposition(site):
    targets = site.prometheus.api("targets")["activeTargets"]
    (url,) = [each["scrapeUrl"] for each in targets if each["labels"]["job"] == "sre-agent"]
    words = [program("promtool"), "check", "metrics"]
    ran = subprocess.run(words, input=read(url), capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout + ran.stderr) == (0, "")


@pytest.mark.journey
def test_dashboard_and_rules_name_only_what_is_there():
    """Needs no Prometheus: each name is one of the catalogue's, with a suffix that its type has."""
    names = set()
    for metric in (*HISTORY, *PRESENT):
        histogram = metric.kind is Kind.HISTOGRAM
        names |= {f"{metric.name}_{end}" for end in ("bucket", "sum", "count")} if histogram else {metric.name}
    texts = [text for _, text in expressions()] + [(DEPLOY / "sre-agent.rules.yml").read_text(), DASHBOARD_VARIABLES]
    used = {name for text in texts for name in re.findall(r"\bsre_\w+", text)} - {"sre_agent"}
    assert used - names == set()
