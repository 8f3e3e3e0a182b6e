"""Source that IPython quotes in its tracebacks: numbered lines around the one that failed, no evidence of anything."""

import re
from collections.abc import Sequence

MOST_LINES = 40
"""IPython quotes five lines around the one that failed; a call over several lines counts as one of them."""

_NUMBERED = re.compile(r"\s{0,12}(?:-{1,8}>\s?)?\d{1,6}(?:\s.*)?$")
_FRAME = re.compile(r"(?:File )?[~/<]\S{1,400}(?::\d{1,7},)? in \S")
"""``File ~/a.py:116, in name(...)``, and ``/a.py in name(...)`` of IPython before 8."""


def is_numbered_source(lines: Sequence[str], index: int) -> bool:
    """Whether a line is source below the head of one of IPython's frames, with only such lines between."""
    if not _NUMBERED.match(lines[index]):
        return False
    for at in range(index - 1, max(-1, index - MOST_LINES), -1):
        if not _NUMBERED.match(lines[at]):
            return _FRAME.match(lines[at]) is not None
    return False
