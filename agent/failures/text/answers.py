"""Which requests that a server could not serve it served later."""

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from functools import cached_property

from agent.failures.text.phases import Timeline
from agent.failures.text.streams import api_server_of

_POSTED = re.compile(r'"(?P<what>POST \S{1,200}) HTTP/\d(?:\.\d)?" (?P<status>\d{3})\b')

MOST_BY_CHANCE = 3
"""So many requests of one kind that end in a 500, and none that is served, are no chance."""


class Answers:
    """The requests that post something, by the process that answered them.

    Args:
        lines: The text.
        timeline: Which server, and which start of it, wrote a line.
    """

    def __init__(self, lines: Sequence[str], timeline: Timeline) -> None:
        self._lines, self._timeline = lines, timeline

    @property
    def any_refused(self) -> bool:
        """Whether any line answers a request that posts something with a 500, a 502 or the like."""
        return bool(self._refused)

    def never_given(self, index: int) -> bool:
        """Whether a line is one of several 500s of a request, and the same process serves none of the like below.

        What it serves of others says nothing of these.
        """
        request = self._request(index, "5")
        if request is None or self._refused[request] < MOST_BY_CHANCE:
            return False
        return self._served.get(request, -1) < index

    def given_later(self, index: int) -> bool:
        """Whether a line answers a request with a 500, and the same process serves the like below.

        Not where two servers may have written the line.
        """
        request = self._request(index, "5")
        served = request is not None and self._served.get(request, -1) > index
        return served and not self._timeline.may_be_of_two(index, perhaps=True)

    @cached_property
    def _served(self) -> dict[Hashable, int]:
        """Where each process served each request last."""
        asked = ((self._request(index, "2"), index) for index, line in enumerate(self._lines) if '"POST ' in line)
        return {request: index for request, index in asked if request is not None}

    @cached_property
    def _refused(self) -> Counter[Hashable]:
        """How often each process answered each request with a 500."""
        asked = (self._request(index, "5") for index, line in enumerate(self._lines) if '"POST ' in line)
        return Counter(request for request in asked if request is not None)

    def _request(self, index: int, status: str) -> Hashable:
        """Who answered what with a status of that first digit, as the line says; None where it does not."""
        found = _POSTED.search(self._lines[index])
        if found is None or not found["status"].startswith(status):
            return None
        process = api_server_of(self._lines[index])
        return self._timeline.server(index), self._timeline.start(index), process, found["what"]
