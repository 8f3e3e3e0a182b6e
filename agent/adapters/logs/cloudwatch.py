"""The log of a server that CloudWatch Logs keeps, and what EC2 itself kept of a machine: both outlive the machine."""

import re
from datetime import datetime
from typing import Any, Final

from agent.adapters.aws.client import Aws
from agent.adapters.logs.journal import Entry
from agent.errors import InputRejected

MOST_PAGES: Final = 40
PAGE_LINES: Final = 10_000  # GetLogEvents gives no more at once
STARTS: Final = re.compile(r"vLLM API server version")
"""What a server prints first; a stream does not say where one start ends and another begins."""

KERNEL: Final = re.compile(r"NVRM: Xid|Out of memory: Killed process|oom-kill:|Kernel panic")


def stream_of(aws: Aws, region: str, group: str, prefix: str) -> str:
    """Return the stream of a group that was written last, of those whose names begin so.

    Raises:
        InputRejected: There is no such group or stream.
    """
    asked: dict[str, Any] = {"logGroupName": group}
    asked |= {"logStreamNamePrefix": prefix} if prefix else {"orderBy": "LastEventTime", "descending": True}
    rows = aws.call(region, "describe_log_streams", **asked)["logStreams"]
    if not rows:
        raise InputRejected(
            f"the log group {group!r} was not read",
            why=f"none of its streams begins with {prefix!r}",
            hint="name the beginning of one in services.toml: log_stream = '...'",
        )
    return str(max(rows, key=lambda row: row.get("lastEventTimestamp", 0))["logStreamName"])


def stream_entries(
    aws: Aws, region: str, group: str, stream: str, *, until: datetime, lines: int
) -> tuple[tuple[Entry, ...], bool]:
    """Return the last lines of a stream, oldest first, read page by page from its end, and whether its beginning was.

    Args:
        aws: The account.
        region: Where the group is.
        group: Its name.
        stream: The name of one of its streams.
        until: Lines from after it are left out.
        lines: How many at most.
    """
    found: list[tuple[int, str]] = []
    asked: dict[str, Any] = {"endTime": int(until.timestamp() * 1000) + 1, "limit": min(lines, PAGE_LINES)}
    for _ in range(MOST_PAGES):
        page = aws.call(
            region, "get_log_events", logGroupName=group, logStreamName=stream, startFromHead=False, **asked
        )
        found = [(int(e["timestamp"]), str(e["message"])) for e in page["events"]] + found
        token = page["nextBackwardToken"]
        if token == asked.get("nextToken") or len(found) >= lines:
            break
        asked["nextToken"] = token
    kept = found[-lines:]
    return _started(kept), len(found) < lines


def _started(rows: list[tuple[int, str]]) -> tuple[Entry, ...]:
    entries, start = [], 0
    for at_ms, message in rows:
        start += bool(STARTS.search(message))
        text = message.rstrip("\n")[:4000]
        entries.append(Entry(at_us=at_ms * 1000, start=f"start {start}", text=text))
    return tuple(entries)


def system_log(aws: Aws, region: str, instance: str) -> tuple[Entry, ...]:
    """Return what the kernel said of GPUs and of memory in the system log that EC2 keeps (GetConsoleOutput).

    Its lines have no time of day: they get the one at which EC2 wrote it. EC2 keeps the last 64 KB.
    """
    answer = aws.call(region, "get_console_output", InstanceId=instance)
    at = answer.get("Timestamp")
    lines = str(answer.get("Output") or "").splitlines()
    at_us = int(at.timestamp() * 1_000_000) if isinstance(at, datetime) else 0
    return tuple(Entry(at_us=at_us, start="", text=line[:4000]) for line in lines if KERNEL.search(line))
