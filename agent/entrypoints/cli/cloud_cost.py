"""What the agent itself costs per month, from infra/monthly_cost.toml, as lines for people."""

import argparse
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FILE = Path("infra/monthly_cost.toml")


def cost_lines(table: dict[str, Any], *, endpoint_usd_per_h: float | None = None) -> list[str]:
    """Return one line for each item, and the sum.

    Args:
        table: The parsed file.
        endpoint_usd_per_h: Price of a running hour of the model's own endpoint, None where there is none.
    """
    items = table["item"]
    lines = [f"  {item['usd']:7.2f} USD  {item['what']} ({item['as_of']}: {item['how']})" for item in items]
    lines.append(
        f"  {sum(item['usd'] for item in items):7.2f} USD  a month, before free tiers, without what is watched"
    )
    if endpoint_usd_per_h is not None:
        lines.append(
            f"  {endpoint_usd_per_h:7.2f} USD  more for each hour in which the model endpoint runs; asleep it costs 0"
        )
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Print the lines.

    Returns:
        0.
    """
    parser = argparse.ArgumentParser(prog="python -m agent.entrypoints.cli.cloud_cost", description=__doc__)
    parser.add_argument("--endpoint-shape", metavar="NAME", help="shape of the model's endpoint, as in prices.toml")
    args = parser.parse_args(argv)
    per_hour = None
    if args.endpoint_shape:
        from agent.catalogue.load_platforms import load_platform_catalogue

        shapes = {shape.name: shape for shape in load_platform_catalogue().shapes}
        per_hour = shapes[args.endpoint_shape].usd_per_h if args.endpoint_shape in shapes else None
    print("\n".join(cost_lines(tomllib.loads(FILE.read_text(encoding="utf-8")), endpoint_usd_per_h=per_hour)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
