"""What the deployed `decide` calls: one gate for the process, opened at its first request."""

from functools import cache
from typing import TYPE_CHECKING

from agent.entrypoints.decide_gate import gate_of, respond
from agent.entrypoints.functions import outfit_of, project, settings, unopened, warm
from agent.entrypoints.telemetry import traced
from agent.errors import SreError
from agent.ports.world import Owner

if TYPE_CHECKING:
    from werkzeug.wrappers import Request, Response

    from agent.entrypoints.decide import Gate

__all__ = ["decision", "warm"]


def decision(request: "Request") -> "Response":
    """Answer one request; 503 where settings or store cannot be opened, and nothing was recorded."""
    from werkzeug.wrappers import Response

    with traced(request.headers, project=project()):
        try:
            gate = _gate()
        except SreError as error:
            said, status = unopened(error)
            return Response(said, status=status)
        return respond(request, gate)


@cache
def _gate() -> "Gate":
    return gate_of(settings(), outfit_of(Owner.DECIDE).worlds[Owner.DECIDE])
