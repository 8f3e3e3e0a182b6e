"""What Terraform must know of services.toml: the watched services and the filters of the sinks, as JSON variables."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from agent.catalogue.load_bundled import load_healthy
from agent.catalogue.load_failures import load_failures
from agent.catalogue.load_fit import load_fit_catalogue
from agent.core.intake.sink_filter import sink_filters
from agent.core.service.services import Services, parse_services
from agent.errors import InputRejected, SreError

EXAMPLE = Path("infra/services.example.toml")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the variables of one installation.

    Returns:
        0, or 2 where services.toml cannot be used.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.cloud_values", description=__doc__)
    parser.add_argument("--services", type=Path, default=EXAMPLE, metavar="FILE", help="services.toml")
    args = parser.parse_args(argv)
    try:
        found = cloud_values(_services(args.services))
    except SreError as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(found, indent=2))
    return 0


def cloud_values(services: Services) -> dict[str, dict[str, object]]:
    """Return Terraform's variables of these names.

    Only services that the cloud's own interfaces can reach are named; those on other platforms reach us through
    ``ingest``, and nothing is granted for them.
    """
    filters = sink_filters(services, load_failures().signatures, load_healthy())
    watched = {
        service.name: {
            "platform": service.platform,
            "project": service.project or "",
            "location": service.location or "",
            "accelerator": service.accelerator,
            "buckets": sorted({uri.removeprefix("gs://").partition("/")[0] for uri in service.mounts.values()}),
        }
        for service in services.services
        if service.platform in {"cloud_run", "kubernetes", "tpu_vm"}
    }
    return {"watched": dict(watched), "sink_filters": dict(filters)}


def _services(path: Path) -> Services:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputRejected(
            f"{str(path)!r} was not read",
            why=error.strerror or str(error),
            hint=f"copy {EXAMPLE} to services.toml and name your services",
        ) from error
    return parse_services(text, frozenset(load_fit_catalogue().accelerators))


if __name__ == "__main__":
    sys.exit(main())
