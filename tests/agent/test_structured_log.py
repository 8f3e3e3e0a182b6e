"""The log's library leaves rich alone, and leaves it to whoever wants it."""

import json
import subprocess
import sys

SHOWN = """
import json, sys
{first}
from agent.structured_log import structlog
taken = "rich" in sys.modules
from rich.console import Console
structlog.get_logger().info("seen")
print(json.dumps([taken, Console.__module__, sys.modules["structlog"] is structlog]))
"""


def shown(first=""):
    ran = subprocess.run([sys.executable, "-c", SHOWN.format(first=first)], capture_output=True, text=True, check=True)
    assert "seen" in ran.stdout
    return json.loads(ran.stdout.splitlines()[-1])


def test_it_takes_no_rich_along_which_can_be_imported_afterwards():
    assert shown() == [False, "rich.console", True]


def test_where_rich_is_loaded_it_stays():
    assert shown("import rich") == [True, "rich.console", True]
