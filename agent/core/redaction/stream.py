"""Redaction of a text that arrives in chunks: a secret cut by a border is still one secret."""

from agent.core.redaction.redactor import Redacted, Redactor

HELD = 24_576
"""Letters held back, more than any format's window, so that whatever begins before the cut also ends in the buffer."""

LONGEST = 1_048_576
"""Letters of one unbroken secret after which it is given out as a mark and its rest is dropped."""


class RedactionStream:
    """A text in chunks. Not for two threads.

    Given out and joined, the pieces hold no secret that the whole text would not have held after redaction. Letters
    come out late: up to twice `HELD` wait until `finish`, or `flush` where a person is waiting for the line.

    Args:
        redactor: What redacts the pieces.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._buffer = ""
        self._dropping = False
        self._next_try = 2 * HELD

    def feed(self, chunk: str) -> Redacted:
        """Take a chunk and give out what is safe to show by now, possibly nothing."""
        self._buffer += self._after_drop(chunk)
        if len(self._buffer) <= self._next_try:
            return self._out(0)
        cut = self._safe_cut()
        # A buffer that is one growing secret is looked at again when it has doubled: the work stays linear.
        self._next_try = 2 * HELD if cut else 2 * len(self._buffer)
        return self._out(cut)

    def finish(self) -> Redacted:
        """Give out the rest."""
        return self._out(len(self._buffer))

    def flush(self) -> Redacted:
        """Give out all whole lines, where waiting longer is worse than a secret cut by a line's end.

        Not promised: a key block whose end has not come yet is redacted line by line only as far as it looks like one.
        """
        return self._out(self._buffer.rfind("\n") + 1)

    def _safe_cut(self) -> int:
        cut = len(self._buffer) - HELD
        line = self._buffer.rfind("\n", cut - HELD // 2, cut) + 1
        cut = line or cut
        for since, _, end in self._redactor.spans(self._buffer):
            if since < cut < end:
                cut = since
        if cut == 0 and len(self._buffer) > LONGEST:
            self._dropping = True
            return len(self._buffer)
        return cut

    def _after_drop(self, chunk: str) -> str:
        if not self._dropping:
            return chunk
        for position, sign in enumerate(chunk):
            if sign.isspace() or sign in "\"'<>,;":
                self._dropping = False
                return chunk[position:]
        return ""

    def _out(self, cut: int) -> Redacted:
        ready, self._buffer = self._buffer[:cut], self._buffer[cut:]
        return self._redactor.redact(ready)
