"""What a deployed function is made of: its settings, and its App, opened at its first request."""

import threading
from functools import cache

from agent.app import App, Role, build_app
from agent.app.catalogues import matcher
from agent.app.redaction import redactor
from agent.entrypoints.cold_start import loading
from agent.entrypoints.telemetry import configure_log, current_trace
from agent.errors import SreError
from agent.settings import Settings, read_settings
from agent.structured_log import structlog

StatusReply = tuple[str, int]

log = structlog.get_logger(__name__)

_opening = threading.Lock()


def unavailable(error: SreError) -> StatusReply:
    """Answer while store or settings cannot be used: nothing was done, and everything may be sent again."""
    log.error("function.init_failed", error=str(error))
    return "not available, try again\n", 503


@cache
def settings() -> Settings:
    """Return the settings of this process; reading them also chooses how its log is written."""
    found = read_settings()
    configure_log(as_json=True)
    return found


def app_of(role: Role) -> App:
    """Return what this function is made of; opened once, at its first request.

    Not before: the web server forks after it has loaded the function, and neither a database nor a channel may
    cross a fork.
    """
    with _opening:
        return _app(role)


def warm() -> None:
    """Do what needs neither network nor files of state, so that it is done before the fork."""
    settings()
    matcher()
    redactor()


@cache
def _app(role: Role) -> App:
    with loading():
        return build_app(settings(), role, trace=current_trace)
