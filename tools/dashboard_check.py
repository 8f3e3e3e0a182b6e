"""Reads the Grafana dashboard with Grafana's own published model, and says what that does not know.

Run: make manifests. Grafana takes any JSON and leaves out in silence what its model does not have: a misspelt option
shows the wrong picture. The model is the package grafana-foundation-sdk, which Grafana generates from its schemas.
"""

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

DASHBOARD = Path(__file__).resolve().parents[1] / "deploy" / "grafana" / "sre-agent.json"
EXPORTED: Final = "/templating/list/definition"  # Grafana's own exports have it beside `query`, and its model does not


def lost(written: Any, known: Any, at: str = "") -> Iterator[str]:
    """Return the paths of what is written and not known, or known as something else.

    Args:
        written: JSON as it stands in the file.
        known: The same as the model writes it again; what it adds does not count.
        at: The path so far.
    """
    if isinstance(written, dict) and isinstance(known, dict):
        for key, value in written.items():
            if key not in known:
                yield f"{at}/{key}"
            else:
                yield from lost(value, known[key], f"{at}/{key}")
    elif isinstance(written, list) and isinstance(known, list) and len(written) == len(known):
        for one, other in zip(written, known, strict=True):
            yield from lost(one, other, at)
    elif written != known:
        yield at


def modelled(dashboard: dict[str, Any]) -> Any:
    """Return the dashboard as Grafana's model reads and writes it.

    Raises:
        ModuleNotFoundError: The package is not installed.
    """
    import_module("grafana_foundation_sdk.cog.plugins").register_default_plugins()
    read = import_module("grafana_foundation_sdk.models.dashboard").Dashboard.from_json(dashboard)
    return json.loads(json.dumps(read, cls=import_module("grafana_foundation_sdk.cog.encoder").JSONEncoder))


def main() -> int:
    """Print each path that the model does not know; 1 where there is one."""
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    found = sorted(set(lost(dashboard, modelled(dashboard))) - {EXPORTED})
    for path in found:
        print(f"{DASHBOARD.name}: Grafana's model does not know {path}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
