"""The page of metrics, generated from the table that the exposition is written from."""

import sys
from pathlib import Path

from agent.entrypoints.metrics.catalogue import HISTORY, PRESENT, Metric
from agent.failures.signature import FailureClass

PAGE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"
HEAD = """# Metrics

Written from `agent/entrypoints/metrics/catalogue.py` by `python -m tools.metrics_page`; `--check` says whether it
is current.

`sre-agent up` serves `/metrics` at the console's own address, in Prometheus's text form or OpenMetrics, to whoever
may read the console: on loopback to this machine, elsewhere under an IP address or the name in `PUBLIC_URL`. It
shows no log text, no plan and no person; let only your monitoring reach the port ([Kubernetes](kubernetes.md) has
the rule). The console on Google Cloud answers 404 there, because each of its instances would read the whole record for
itself; log-based metrics take its place, listed in [On call](operate.md#metrics-of-the-agent).

## Scrape, alert, look
`deploy/prometheus/` holds a `prometheus.yml` that scrapes this machine, the alert rules `sre-agent.rules.yml`, and
an `alertmanager.yml` that sends alerts about your servers to the agent and alerts about the agent to people:

```
promtool check config deploy/prometheus/prometheus.yml
amtool check-config deploy/prometheus/alertmanager.yml
prometheus --config.file=deploy/prometheus/prometheus.yml
```

Set `INGEST_SECRETS=alertmanager=SECRET` for the agent and write the same secret into `alertmanager.yml`. Only
alerts with the label `sre_agent="true"` go to the agent, such as those of `infra/vllm_rules.yaml`; its own alerts
would otherwise come back to it as incidents of the service that they name.

In Grafana choose Dashboards, New, Import, and upload `deploy/grafana/sre-agent.json`; it asks for your Prometheus
data source. No Grafana was run to test it: a test asks every query of a real Prometheus after an incident, and
`make manifests` reads the file with the models that Grafana publishes for 10.1 and 11.6, which know all of it.

## How they are counted
Counters and histograms are folded from the record of incidents, not counted beside it: a restart, and a second
process on the same database, come to the same numbers. The past is read in pieces, 1,000 incidents at a scrape;
until all of it is read `sre_history_counted` is 0 and no counter is shown, so that none seems to begin anew. From
then on a scrape reads what is open, what has moved, and what was opened since.

A scrape has limits: it lists 5,000 open incidents (`sre_incidents_truncated` is 1 where there may be more), reads the
timelines of 1,000 of them that moved, and looks at 200 that are open no more; what is left comes with the next scrapes.

They cover live incidents; replays and change requests are left out. `class` is the failure class as it was known then,
one of those below. `service` is a name of services.toml, and `other` where the name is not watched, so that no log line
can make series. When you take a service out of services.toml or put it back, the next start counts its past under the
other name: `other` steps, and `increase` shows what never happened. The sum over all services does not step; the alert
rules ask for that, or leave `other` out. A scrape answers an error where a database does not, which Prometheus shows
as `up == 0`.
"""


def page() -> str:
    """Return the page as Markdown."""
    classes = ", ".join(f"`{name.value}`" for name in FailureClass)
    return (
        f"{HEAD}\n"
        f"## Counted from the record\n{_table(HISTORY)}\n"
        f"## As it stands\n{_table(PRESENT)}\n"
        f"Values of `class`: {classes}, `other`.\n\n"
        "`sre_model_cost_usd_total` needs `MODEL_USD_PER_MILLION_IN` and `MODEL_USD_PER_MILLION_OUT`; all tokens are\n"
        "priced at what is set now, so a new price is a step. Incidents from before answers were counted apart are\n"
        "priced as questions. `sre_service_drift` is what the look at the services found last, once a minute.\n"
    )


def _table(metrics: tuple[Metric, ...]) -> str:
    rows = [f"| `{m.name}` | {m.kind.value} | {_labels(m)} | {m.help} |\n" for m in metrics]
    return "\n| name | type | labels | what it says |\n|---|---|---|---|\n" + "".join(rows)


def _labels(metric: Metric) -> str:
    fixed = {metric.fixed[0]: metric.fixed[1]} if metric.fixed is not None else {}
    shown = (f"`{n}` ({', '.join(fixed[n])})" if n in fixed and n != "class" else f"`{n}`" for n in metric.labels)
    return ", ".join(shown) or "none"


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` say whether it is current.

    Returns:
        0: written, or current; 1: not current; 2: another argument was given.
    """
    if arguments not in ([], ["--check"]):
        print("metrics_page takes nothing or --check", file=sys.stderr)
        return 2
    if not arguments:
        PAGE.write_text(page())
        return 0
    if PAGE.exists() and PAGE.read_text() == page():
        return 0
    print("docs/metrics.md is not current. Hint: python -m tools.metrics_page", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
