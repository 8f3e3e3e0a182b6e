"""A request of Pub/Sub or of the scheduler: what the deployed functions do with it, and the status that answers it.

Who may call is settled before we are asked: these functions are private, and Cloud Run's own IAM check has verified the
pusher's or scheduler's OIDC token (signature, issuer, audience, account). A second check here would need the same keys
and prove the same thing.
"""

from typing import TYPE_CHECKING

from agent.app import Role
from agent.app.catalogues import project_of
from agent.entrypoints.function_app import StatusReply, app_of, settings, unavailable
from agent.entrypoints.pubsub.delivery import PUSH_LIMIT, delivery_from, unreadable
from agent.entrypoints.pubsub.handlers import handle, on_tick
from agent.entrypoints.pubsub.settle import settle
from agent.entrypoints.telemetry import follow, traced
from agent.errors import InputRejected, SreError
from agent.ports.bus import Outcome, Topic
from agent.ports.stage_context import RECEIVER_OF, Owner
from agent.stages.observe_services import observe_services
from agent.structured_log import structlog

if TYPE_CHECKING:
    from flask import Request

log = structlog.get_logger(__name__)


def push(request: "Request", topic: Topic) -> StatusReply:
    """Handle one pushed message.

    Args:
        request: In any form that Pub/Sub or Eventarc sends.
        topic: The topic that the function is bound to.

    Returns:
        200 once its work is committed and its messages are sent, or when it can never succeed and is kept aside;
        503 where another delivery can help.
    """
    if request.method != "POST":
        return "POST a Pub/Sub message\n", 405
    headers = dict(request.headers)
    with traced(headers, project=project_of(settings())):
        try:
            app = app_of(Role(RECEIVER_OF[topic]))
        except SreError as error:
            return unavailable(error)
        body = request.stream.read(PUSH_LIMIT + 1)
        try:
            delivery = delivery_from(headers, body, topic=topic)
        except InputRejected as error:
            return answer(settle(error, unreadable(headers, body, topic=topic), app.quarantine))
        follow(delivery.attributes.get("trace", ""))  # the trace in which its story began
        try:
            return answer(handle(app, delivery))
        finally:
            app.tracer.flush()


def answer(outcome: Outcome) -> StatusReply:
    """Return body and HTTP status: 200 acknowledges, 503 asks for another delivery."""
    return outcome.value, 503 if outcome is Outcome.RETRY else 200


def tick(request: "Request") -> StatusReply:
    """Run what time has made due; 503 where an incident failed, the others went on."""
    if request.method != "POST":
        return "POST a tick\n", 405
    with traced(dict(request.headers), project=project_of(settings())):
        try:
            context = app_of(Role.TICK).contexts[Owner.TICK]
            try:
                on_tick(context)
            finally:
                observe_services(context)
                context.tracer.flush()
        except SreError as error:
            log.warning("tick.failed", error=str(error))
            return "failed, the next tick goes on\n", 503
    return "ticked\n", 200
