"""Where tests keep their files: in memory where it serves as a disk, because nothing of them must outlive the machine."""

import os
import re
import shutil
from functools import cache
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 << 30


@cache
def in_memory() -> str | None:
    """Return a folder whose files lie in memory; None where there is none, or little room, or no program may run from it."""
    available = re.search(r"MemAvailable: *(\d+) kB", _text(Path("/proc/meminfo")))
    if available is None or not MEMORY.is_dir() or os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        return None
    return str(MEMORY) if min(shutil.disk_usage(MEMORY).free, int(available[1]) << 10) >= ROOM_BYTES else None


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
