"""What becomes of a delivery: errors turn into acknowledge, redeliver or quarantine here and nowhere else."""

from agent.errors import DependencyFailed, SreError, StateConflict
from agent.ports.bus import Delivery, Outcome, Quarantine
from agent.structured_log import structlog

HANDLED_FAILURES = 5  # of one message, then it is quarantined; the bus's own attempts count more than these

_BUSY_CODES = frozenset({408, 429, 504})

log = structlog.get_logger(__name__)


def settle(error: Exception, delivery: Delivery, quarantine: Quarantine) -> Outcome:
    """Say what becomes of a delivery whose handling failed; never raises.

    | the handler raised | outcome |
    |---|---|
    | StateConflict: rivals wrote first, time and again | RETRY; it says nothing about the message and is not counted |
    | an error that no further delivery can help | QUARANTINED at once |
    | a time-out, "too many requests" | RETRY; it says nothing about the message and is not counted |
    | DependencyFailed, or a bug | RETRY; the fifth time QUARANTINED |

    A race that is lost once never comes here: ``advance`` sends what the rival committed, looks again, and returns. Who
    lost time and again may not have done what it came for (a signal may not be stored), so an empty outbox is no leave.

    Args:
        error: What was raised.
        delivery: What arrived.
        quarantine: Counts failures and keeps what can never succeed. What it cannot keep is not acknowledged.
    """
    outcome = _outcome(error, delivery, quarantine)
    log.warning("delivery.failed", topic=delivery.topic, message=delivery.message_id, outcome=outcome, error=str(error))
    return outcome


def is_busy(error: BaseException) -> bool:
    """Whether a failure only says "later": a time-out or a rate limit, here or in what caused it.

    Foreign errors are known by ``TimeoutError``, a name that ends in Timeout or TimeoutError, or an HTTP code
    408, 429 or 504 (google.api_core and openai carry one as ``code`` or ``status_code``).
    """
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            return False
        if isinstance(seen, TimeoutError) or type(seen).__name__.endswith(("Timeout", "TimeoutError")):
            return True
        if any(_code(seen, key) in _BUSY_CODES for key in ("code", "status_code")):
            return True
        seen = seen.__cause__
    return False


def _outcome(error: Exception, delivery: Delivery, quarantine: Quarantine) -> Outcome:
    if isinstance(error, StateConflict):
        return Outcome.RETRY
    if isinstance(error, SreError) and not error.redeliver:
        return _put_away(delivery, error, quarantine)
    if isinstance(error, DependencyFailed | TimeoutError) and is_busy(error):
        return Outcome.RETRY
    try:
        failures = quarantine.failed(delivery, _reason(error))
    except Exception:  # noqa: BLE001 - not counted, so not acknowledged
        return Outcome.RETRY
    return _put_away(delivery, error, quarantine) if failures >= HANDLED_FAILURES else Outcome.RETRY


def _put_away(delivery: Delivery, error: Exception, quarantine: Quarantine) -> Outcome:
    try:
        quarantine.put(delivery, _reason(error))
    except Exception:  # noqa: BLE001 - what was not kept is not acknowledged
        return Outcome.RETRY
    return Outcome.QUARANTINED


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:1000]


def _code(error: BaseException, key: str) -> object:
    code = getattr(error, key, None)
    return code if isinstance(code, int) else None
