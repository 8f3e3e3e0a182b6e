"""R8: any body is survived; a body that can never succeed is put away at once and never asked for again."""

import contextlib
import io
from datetime import UTC, datetime

import pytest

from agent.app import build_app_in_memory
from agent.core.intake.origin import Reading
from agent.core.service.services import Services
from agent.entrypoints.cli.records import records_in
from agent.entrypoints.http.ingest import Sender, ingest
from agent.entrypoints.pubsub.delivery import delivery_from, unreadable
from agent.entrypoints.pubsub.handlers import on_event
from agent.entrypoints.pubsub.settle import settle
from agent.errors import InputRejected
from agent.ports.bus import Outcome
from agent.ports.stage_context import Owner
from agent.settings import read_settings
from tests.outside import absent
from tests.simulation import bodies

MUTANTS = 48  # of each sample
PROMISED = 5000


class StoppedClock:
    def now(self):
        return datetime(2026, 11, 21, tzinfo=UTC)


class Survived:
    """Handles push requests as the intake function does, on a store in memory, and counts what became of them."""

    def __init__(self, folder):
        settings = read_settings({}).with_(platform="none")
        self.installation = build_app_in_memory(
            settings, clock=StoppedClock(), state=folder / "state", services=Services(services=())
        )
        self.quarantine = self.installation.quarantine
        self.outcomes = dict.fromkeys(Outcome, 0)
        self.failures = []
        self.signals = 0

    def push(self, headers, body):
        self.outcomes[self._pushed(headers, body)] += 1

    def _pushed(self, headers, body):
        try:
            delivery = delivery_from(headers, body)
        except InputRejected as error:
            return settle(error, unreadable(headers, body), self.quarantine)
        try:
            self.signals += len(on_event(self.installation.contexts[Owner.INTAKE], delivery))
        except Exception as error:  # noqa: BLE001 - as the functions do
            if not isinstance(error, InputRejected):
                self.failures.append((body, error))
            return settle(error, delivery, self.quarantine)
        return Outcome.ACK


def judged(survived, count):
    assert survived.failures == []
    assert survived.outcomes[Outcome.RETRY] == 0
    assert sum(survived.outcomes.values()) == count


def test_our_own_bodies_and_mutants_of_every_sample_are_survived(tmp_path):
    """Published payloads changed at a seeded place, and a set of our own, in every envelope: no bug, no redelivery."""
    survived, count = Survived(tmp_path), 0
    for body in bodies.OWN:
        for headers, request in bodies.ways(body):
            survived.push(headers, request)
            count += 1
    for number, body in enumerate(bodies.samples()):
        for seed in range(MUTANTS):
            changed = bodies.mutated(body, f"{number}/{seed}")
            headers, request = bodies.ways(changed)[seed % 4]
            survived.push(headers, request)
            count += 1
    judged(survived, count)
    assert survived.signals > 500, "mutations that all destroy the body would test nothing behind the parser"
    assert survived.outcomes[Outcome.QUARANTINED] > 500
    assert count > 3000


@pytest.mark.shared
def test_the_public_corpora_are_survived(tmp_path):
    """JSONTestSuite in four envelopes and the naughty strings at five places: with the mutants, 5,000 bodies."""
    found = bodies.suite()
    if found is None:
        absent("../shared/data/corpora, the public corpora")
    documents, naughty = found
    requests = [way for body in documents for way in bodies.ways(body)]
    requests += [bodies.ways(body)[0] for text in naughty for body in bodies.carried(text)]
    requests += [bodies.ways(text.encode("utf-8", "surrogatepass"))[2] for text in naughty]
    survived = Survived(tmp_path)
    for headers, request in requests:
        survived.push(headers, request)
    judged(survived, len(requests))
    mutants = len(bodies.OWN) * 4 + len(bodies.samples()) * MUTANTS
    assert len(requests) + mutants >= PROMISED


def test_the_same_bodies_are_survived_by_the_other_doors():
    """A sender's post and a replay's file refuse with the same typed error, row by row."""
    sender = Sender(name="s", shapes=frozenset({"alertmanager", "log_entry"}), secret=b"0123456789abcdef")
    for number, body in enumerate([*bodies.OWN, *bodies.samples()]):
        changed = bodies.mutated(body, f"other/{number}") if number >= len(bodies.OWN) else body
        with contextlib.suppress(InputRejected):
            ingest("s", {"x-sre-secret": "0123456789abcdef"}, changed, senders={"s": sender}, reading=Reading())
        assert list(records_in(io.BytesIO(changed), origin="x")) is not None


def test_a_good_body_after_a_bad_one_goes_through(tmp_path):
    """What is put away blocks nothing."""
    survived = Survived(tmp_path)
    for body in bodies.OWN:
        survived.push(*bodies.ways(body)[0])
    before = survived.signals
    survived.push(*bodies.ways((bodies.DATA / "samples" / "log_container_exit.json").read_bytes())[0])
    assert survived.signals == before + 1


@pytest.mark.parametrize(
    "sample",
    [
        "azure_monitor_log_alert_common_schema",
        "eventbridge_cloudwatch_alarm",
        "aca_system_log_cl_probe_failed",
        "aca_system_log_cl_terminated",
        "aca_system_log_stream",
    ],
)
def test_mutants_of_azure_and_eventbridge_bodies_are_taken_or_refused_by_name(sample):
    """1,000 of each through `ingest`, with its sender's secret: accepted, ignored or an InputRejected, never a crash."""
    raw = (bodies.DATA / "samples" / f"{sample}.json").read_bytes()
    secret = b"0123456789abcdef" * 2
    shapes = frozenset({"azure_alert", "eventbridge", "container_apps"})
    senders = {"cloud": Sender(name="cloud", secret=secret, shapes=shapes)}
    taken = refused = 0
    for seed in range(1_000):
        body = bodies.mutated(raw, f"{sample}/{seed}")
        try:
            headers = {"authorization": f"Bearer {secret.decode()}"}
            ingest("cloud", headers, body, senders=senders, reading=Reading(received_at=StoppedClock().now()))
            taken += 1
        except InputRejected:
            refused += 1
    assert taken > 100
    assert refused > 100
