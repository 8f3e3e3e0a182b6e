"""What the agent itself costs per month, with `decide` warm and cold, from infra/monthly_cost.toml."""

import argparse
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FILE = Path("infra/monthly_cost.toml")
SWITCH = "decide_warm"
"""The Terraform variable that chooses; infra/variables.tf holds its default."""


def monthly_usd(table: dict[str, Any], *, warm: bool) -> float:
    """Return the sum of all items in USD.

    Args:
        table: The parsed file.
        warm: Whether `decide` keeps an instance; else the items that have a ``cold`` price are charged by it.
    """
    return sum(_usd(item, warm=warm) for item in table["item"])


def cost_lines(table: dict[str, Any], *, endpoint_usd_per_h: float | None = None) -> list[str]:
    """Return one line for each item, and the sums with `decide` warm and cold.

    Args:
        table: The parsed file.
        endpoint_usd_per_h: Price of a running hour of the model's own endpoint, None where there is none.
    """
    items = table["item"]
    lines = [f"  {item['usd']:7.2f} USD  {item['what']} ({item['as_of']}: {item['how']})" for item in items]
    warm, cold = (monthly_usd(table, warm=warm) for warm in (True, False))
    lines += [
        f"  {warm:7.2f} USD  a month with decide kept warm, before free tiers, without what is watched",
        f"  {cold:7.2f} USD  a month with decide cold, {SWITCH} = false in EXTRA_VARS: {_instead(items)}",
        "               Slack waits three seconds: whoever presses first may see an error there while decide starts",
    ]
    if endpoint_usd_per_h is not None:
        lines.append(
            f"  {endpoint_usd_per_h:7.2f} USD  more for each hour in which the model endpoint runs; asleep it costs 0"
        )
    return lines


def cost_table(table: dict[str, Any]) -> str:
    """Return the same as the Markdown table of docs/before-you-install.md."""
    rows = [f"| {item['what']} | {item['usd']:.2f} | {_usd(item, warm=False):.2f} |" for item in table["item"]]
    sums = " | ".join(f"**{monthly_usd(table, warm=warm):.2f}**" for warm in (True, False))
    head = ["| item | USD a month | with `decide` cold |", "|---|---|---|"]
    return "\n".join([*head, *rows, f"| **a month** | {sums} |"])


def main(argv: Sequence[str] | None = None) -> int:
    """Print the lines.

    Returns:
        0.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.cloud_cost", description=__doc__)
    parser.add_argument("--endpoint-shape", metavar="NAME", help="shape of the model's endpoint, as in prices.toml")
    parser.add_argument("--markdown", action="store_true", help="the table of docs/before-you-install.md")
    args = parser.parse_args(argv)
    table = tomllib.loads(FILE.read_text(encoding="utf-8"))
    if args.markdown:
        print(cost_table(table))
        return 0
    per_hour = None
    if args.endpoint_shape:
        from agent.catalogue.load_platforms import load_platform_catalogue

        shapes = {shape.name: shape for shape in load_platform_catalogue().shapes}
        per_hour = shapes[args.endpoint_shape].usd_per_h if args.endpoint_shape in shapes else None
    print("\n".join(cost_lines(table, endpoint_usd_per_h=per_hour)))
    return 0


def _instead(items: Sequence[dict[str, Any]]) -> str:
    cold = ((item["cold"], item["as_of"]) for item in items if "cold" in item)
    return "; ".join(f"{part['usd']:.2f} USD for {part['what']} ({as_of}: {part['how']})" for part, as_of in cold)


def _usd(item: dict[str, Any], *, warm: bool) -> float:
    return float((item if warm else item.get("cold", item))["usd"])


if __name__ == "__main__":
    sys.exit(main())
