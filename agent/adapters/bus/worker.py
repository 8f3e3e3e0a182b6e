"""The worker pulls deliveries and has each handled in a thread of its own, until it is stopped."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from agent.adapters.bus.pulling import LeasedDelivery, PullBus
from agent.errors import SreError
from agent.ports.bus import Delivery, Outcome, Quarantine
from agent.structured_log import structlog

log = structlog.get_logger(__name__)

Handle = Callable[[Delivery], Outcome]

FAILURES: Final = 5
DEADLINE_S: Final = 600.0  # as long as a function in the cloud may work on one event


class Worker:
    """Handles deliveries, one in a thread at a time, as the cloud's push would.

    A handler decides by its outcome. What escapes from it is a failure of ours: it is counted, and the message is put
    aside at the fifth; errors that another delivery can fix are only tried again, as often as the bus does.

    Args:
        bus: Where deliveries come from.
        handlers: Who handles a subscription's deliveries.
        quarantine: Where failures are counted and messages put aside.
        threads: How many deliveries are worked on at once.
        poll_s: How long to wait for messages of other processes.
        extend_s: How often the lease of running work is extended; less than half of the shortest lease.
    """

    def __init__(
        self,
        bus: PullBus,
        handlers: Mapping[str, Handle],
        *,
        quarantine: Quarantine,
        threads: int = 4,
        poll_s: float = 0.25,
        extend_s: float = 20,
    ) -> None:
        self._bus = bus
        self._handlers = dict(handlers)
        self._quarantine = quarantine
        self._poll_s = poll_s
        self._extend_s = extend_s
        self._stopping = threading.Event()
        self._finishing = threading.Lock()
        self._running: dict[
            int, tuple[LeasedDelivery, float]
        ] = {}  # by thread: what it works on, and until when we extend it
        self._threads = [
            *(threading.Thread(target=self._work, args=(n,), name=f"worker-{n}", daemon=True) for n in range(threads)),
            threading.Thread(target=self._extend, name="worker-leases", daemon=True),
        ]

    def start(self) -> None:
        """Start the threads; once."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_s: float = 30) -> bool:
        """Take no more deliveries, let the running ones end.

        Returns:
            True when all have ended; False when some still run after ``timeout_s``: their leases end by themselves.
        """
        self._stopping.set()
        ends = time.monotonic() + timeout_s
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, ends - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def run_due(self) -> int:
        """Handle what is due in the calling thread until nothing is; return how many deliveries that were.

        Raises:
            DependencyFailed: The bus does not answer.
        """
        handled = 0
        while found := sum(self._one(subscription) for subscription in self._handlers):
            handled += found
        return handled

    def _work(self, number: int) -> None:
        names = list(self._handlers)
        names = names[number % len(names) :] + names[: number % len(names)]  # threads begin at different subscriptions
        while not self._stopping.is_set():
            try:
                busy = [self._one(name) for name in names if not self._stopping.is_set()]
                if not any(busy):
                    self._bus.wait(self._poll_s)
            except SreError as error:
                log.warning("worker.bus_failed", error=str(error))
                self._stopping.wait(self._poll_s)

    def _one(self, subscription: str) -> bool:
        """Handle one delivery; False where there is none."""
        arrivals = self._bus.pull(subscription)
        for arrival in arrivals:
            self._finish(arrival, self._outcome(arrival))
        return bool(arrivals)

    def _outcome(self, arrival: LeasedDelivery) -> Outcome:
        delivery = arrival.delivery
        thread = threading.get_ident()
        self._running[thread] = (arrival, time.monotonic() + DEADLINE_S)
        try:
            return self._handlers[delivery.subscription](delivery)
        except Exception as error:  # noqa: BLE001 - whatever a handler did wrong must not end the thread nor lose the message
            return self._escaped(delivery, error)
        finally:
            with self._finishing:
                del self._running[thread]

    def _escaped(self, delivery: Delivery, error: Exception) -> Outcome:
        reason = str(error) if isinstance(error, SreError) else f"{type(error).__name__}: {error}"
        log.error("worker.handler_failed", subscription=delivery.subscription, message=delivery.message_id, why=reason)
        if isinstance(error, SreError) and error.redeliver:
            return Outcome.RETRY
        try:
            if self._quarantine.failed(delivery, reason) < FAILURES:
                return Outcome.RETRY
            self._quarantine.put(delivery, reason)
        except SreError as unkept:
            log.warning("worker.quarantine_failed", message=delivery.message_id, error=str(unkept))
            return Outcome.RETRY
        return Outcome.QUARANTINED

    def _finish(self, arrival: LeasedDelivery, outcome: Outcome) -> None:
        """Say to the bus what became of it; where that fails, the lease ends and it is delivered again."""
        try:
            ours = self._bus.retry(arrival) if outcome is Outcome.RETRY else self._bus.ack(arrival)
        except SreError as error:
            log.warning("worker.bus_failed", subscription=arrival.delivery.subscription, error=str(error))
            return
        if not ours:
            log.warning("worker.lease_lost", message=arrival.delivery.message_id, outcome=outcome)

    def _extend(self) -> None:
        while not self._stopping.wait(self._extend_s):
            for thread in tuple(self._running):
                self._extend_one(thread)

    def _extend_one(self, thread: int) -> None:
        with self._finishing:  # so that a lease is never extended after the message was given back
            arrival, until = self._running.get(thread, (None, 0.0))
            if arrival is None or time.monotonic() > until:
                return
            try:
                self._bus.extend(arrival)
            except SreError as error:
                log.warning("worker.bus_failed", subscription=arrival.delivery.subscription, error=str(error))
