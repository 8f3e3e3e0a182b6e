"""P9: how fast a press in Slack is answered while model, platform and notifier hang, beside the same with all well.

Fifty clients press at once, over HTTP on loopback, against the deciding function on SQLite with its real signature,
replay store and recorded decision; beside it other threads of the same process wait for a model, a platform and a
notifier that never answer. Rounds alternate, so that both sides see the same machine. A third figure: the store hangs,
and every press is refused with "not recorded, press again".

    python benchmarks/slack_answer.py [--rounds 6] [--json]
"""

import argparse
import hashlib
import hmac
import http.client
import json
import statistics
import sys
import tempfile
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote_plus

from werkzeug.serving import WSGIRequestHandler, make_server

from agent.adapters.clock import SystemClock
from agent.adapters.store.sqlite.cards import SqliteCards
from agent.adapters.store.sqlite.control import SqliteControlStore
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.in_memory import InMemoryDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.adapters.store.sqlite.store import SqliteStore
from agent.app.catalogues import read_rules
from agent.core.decision.policy import Approver, Policy
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.incident.times import Times
from agent.core.plan.action import Restart
from agent.core.plan.plan import Plan, Risk, Rollout
from agent.core.plan.proof import Proof
from agent.core.service.services import Services
from agent.core.service.serving import Target
from agent.entrypoints.http.decide import beside
from agent.entrypoints.http.decide_service import DecideService
from agent.entrypoints.pubsub.handlers import on_order
from agent.entrypoints.telemetry import configure_log
from agent.errors import SreError
from agent.ports.bus import Delivery
from agent.ports.stage_context import Owner, StageContext
from agent.ports.store import Change
from agent.presentation.slack_card import APPROVE
from agent.stages.tell import tell_people

CLIENTS = 50
SECRET = b"8f742231b10e8888abcd99yyyzzz85a5"
BAR_MS, BAR_RATIO = 300.0, 1.2
POLICY = Policy(approvers=(Approver(name="Ada", slack="U0ADA", services=("gemma",)),))
NEVER = threading.Event()


class Quiet(WSGIRequestHandler):
    """Writes no line for each request."""

    def log_request(self, code="-", size="-"):
        """Say nothing."""


class Bus:
    """Takes every message at once."""

    def publish(self, message):
        """Return the message's id."""
        return message.id


class Hanging:
    """Whatever is asked of it, it never answers."""

    def __getattr__(self, name):
        def hang(*_args, **_kwargs):
            NEVER.wait()
            raise TimeoutError

        return hang


class Well:
    """A notifier that answers at once."""

    def tell(self, _incident, _timeline, *, reference):
        """Return where the message stands."""
        return reference or "C/1/x"


def plan_of(name):
    now = datetime.now(UTC)  # noqa: TID251 - presses are signed with the real time
    return Plan(
        id=f"p-{name}-1", incident=f"inc-{name}", run="live", ordinal=1, cause="engine_dead", why="a fresh start",
        actions=(Restart(),), difference=(), target=Target(service="gemma", uid="u", generation=1, digest="d"),
        rollout=Rollout.IN_PLACE, risk=Risk.LOW, undo="prior template", if_unanswered="nothing", policy=POLICY.digest,
        proof=Proof.NOT_NEEDED, made_at=now, expires_at=now + timedelta(minutes=30),
    )  # fmt: skip


def asked(store, name):
    plan = plan_of(name)
    incident = Incident(
        id=plan.incident, service="gemma", platform="cloud_run", phase=Phase.ASKED, opened_at=plan.made_at,
        phase_at=plan.made_at, quiet_since=plan.made_at, plan=plan, plans_made=1,
    )  # fmt: skip
    store.commit(Change(incident=incident, plan=plan))
    return plan


def press_of(plan):
    value = json.dumps({"plan": plan.id, "digest": plan.digest})
    payload = {
        "type": "block_actions",
        "user": {"id": "U0ADA"},
        "actions": [{"type": "button", "action_id": APPROVE, "value": value}],
    }
    body = f"payload={quote_plus(json.dumps(payload))}".encode()
    stamp = str(int(time.time()))  # noqa: TID251 - as Slack signs
    mac = hmac.new(SECRET, b"v0:%b:%b" % (stamp.encode(), body), hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "X-Slack-Request-Timestamp": stamp,
        "X-Slack-Signature": f"v0={mac}",
    }
    return body, headers


def world_of(folder, owner, **changes):
    whole = {
        "owner": owner,
        "store": SqliteStore(SqliteDatabase(folder / "s.db", Kind.STATE)),
        "control": SqliteControlStore(SqliteDatabase(folder / "c.db", Kind.CONTROL)),
        "cards": SqliteCards(InMemoryDatabase(Kind.STATE)),
        "bus": Bus(),
        "platform_of": lambda _: Hanging(),
        "logs": Hanging(),
        "notifiers": {},
        "model": None,
        "clock": SystemClock(),
        "rules": read_rules(Services(services=()), POLICY, Times()),
        "receipt_key": b"k" * 32,
    }
    return StageContext(**(whole | changes))


def together(port, plans):
    """Every client presses its own button at the same moment; seconds and status of each."""
    begin = threading.Barrier(len(plans))
    took = [(0.0, 0)] * len(plans)

    def one(number):
        body, headers = press_of(plans[number])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        begin.wait()
        began = time.perf_counter()
        connection.request("POST", "/slack/actions", body, headers)
        answer = connection.getresponse()
        answer.read()
        took[number] = (time.perf_counter() - began, answer.status)
        connection.close()

    threads = [threading.Thread(target=one, args=(n,)) for n in range(len(plans))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took


def busy(world, incident, *, hanging):
    """What the other functions do meanwhile: tell people, and look at the platform."""
    if hanging:
        threading.Thread(target=tell_people, args=(world, incident), daemon=True).start()
        order = Delivery(topic=None, message_id="m", data=f'{{"kind":"tell","incident":"{incident}"}}'.encode())
        threading.Thread(target=tell_again, args=(world, order), daemon=True).start()
        threading.Thread(target=world.platform_of("gemma").describe, args=("gemma",), daemon=True).start()
    else:
        tell_people(world, incident)


def tell_again(world, order):
    """Another delivery of the same; while the first one hangs it is put off."""
    with suppress(SreError):
        on_order(world, order)


def p99(values):
    return statistics.quantiles(values, n=100, method="inclusive")[98] * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    configure_log(as_json=True, quiet=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        world = world_of(folder, Owner.DECIDE)
        others = {
            True: world_of(folder, Owner.INCIDENT, notifiers={"slack": Hanging()}),
            False: world_of(folder, Owner.INCIDENT, notifiers={"slack": Well()}),
        }
        gate = DecideService(context=world, clock=SystemClock(), slack_secret=SECRET)
        server = make_server("127.0.0.1", 0, beside(None, gate), threaded=True, request_handler=Quiet)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        took = {True: [], False: []}
        together(server.server_port, [asked(world.store, f"warm{n}") for n in range(CLIENTS)])
        for turn in range(args.rounds):
            for hanging in (False, True) if turn % 2 else (True, False):
                plans = [asked(world.store, f"r{turn}h{int(hanging)}c{n}") for n in range(CLIENTS)]
                busy(others[hanging], plans[0].incident, hanging=hanging)
                answered = together(server.server_port, plans)
                assert all(status == 200 for _, status in answered), {status for _, status in answered}
                took[hanging] += [seconds for seconds, _ in answered]
        store = type("Store", (), {"plan": lambda *_: NEVER.wait()})()
        stuck = DecideService(
            context=world_of(folder, Owner.DECIDE, store=store), clock=SystemClock(), slack_secret=SECRET
        )
        second = make_server("127.0.0.1", 0, beside(None, stuck), threaded=True, request_handler=Quiet)
        threading.Thread(target=second.serve_forever, daemon=True).start()
        refused = together(second.server_port, [plan_of(f"x{n}") for n in range(CLIENTS)])
        server.shutdown()
        second.shutdown()
    found = {
        "clients": CLIENTS,
        "presses": len(took[True]),
        "p50_ms_hanging": round(statistics.median(took[True]) * 1000, 1),
        "p99_ms_hanging": round(p99(took[True]), 1),
        "p99_ms_healthy": round(p99(took[False]), 1),
        "ratio": round(p99(took[True]) / p99(took[False]), 3),
        "store_hangs": sorted({status for _, status in refused}),
        "store_hangs_worst_s": round(max(seconds for seconds, _ in refused), 2),
    }
    held = found["p99_ms_hanging"] <= BAR_MS and found["ratio"] <= BAR_RATIO and found["store_hangs"] == [503]
    print(json.dumps(found | {"held": held}) if args.json else "\n".join(f"{k:<22}{v}" for k, v in found.items()))
    sys.stdout.flush()
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
