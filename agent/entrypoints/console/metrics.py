"""The numbers of the console in Prometheus's text form: incidents by phase and class, and how old the queue is."""

from collections import Counter

from agent.ports.stage_context import StageContext
from agent.ports.store import Query

COUNTED = 1000
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics_text(world: StageContext, queue_age_s: float | None) -> str:
    """Return the exposition.

    Args:
        world: The ports.
        queue_age_s: Age of the oldest message that waits, seconds; None where the bus does not say.

    https://prometheus.io/docs/instrumenting/exposition_formats/ (2026-11-21)
    """
    still_open = world.store.incidents(Query(open_only=True, limit=COUNTED))
    every = world.store.incidents(Query(limit=COUNTED))
    known = {i.id: i for i in (*still_open, *every)}.values()
    counts = Counter((i.phase.value, i.cause, "live" if i.run == "live" else "replay") for i in known)
    lines = [
        f"# HELP sre_incidents Incidents by phase, class and run: open ones and the newest of all, {COUNTED} each.",
        "# TYPE sre_incidents gauge",
    ]
    for (phase, cause, run), count in sorted(counts.items()):
        lines.append(f'sre_incidents{{phase="{phase}",class="{_label(cause)}",run="{run}"}} {count}')
    waiting = sum(1 for i in still_open if i.phase == "ASKED")
    lines += [
        "# HELP sre_plans_waiting Plans that wait for an answer.",
        "# TYPE sre_plans_waiting gauge",
        f"sre_plans_waiting {waiting}",
    ]
    if queue_age_s is not None:
        lines += [
            "# HELP sre_queue_age_seconds Age of the oldest message that waits.",
            "# TYPE sre_queue_age_seconds gauge",
            f"sre_queue_age_seconds {queue_age_s:.3f}",
        ]
    return "\n".join(lines) + "\n"


def _label(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
