"""S10: over a thousand simulated incidents no cap on calls, tokens or seconds is ever exceeded, crashes included."""

import random
from datetime import UTC, datetime, timedelta

from agent.core.diagnosis.diagnosis import Diagnosis, ModelExplanation
from agent.core.diagnosis.model_request import (
    GIVE_UP_S,
    INCIDENT_CAP,
    ROUND_CAP,
    Explanation,
    Spend,
    When,
    round_cap,
    start_request,
)

START = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
CLASSES = ("host_oom", "engine_dead", "kv_cache_insufficient", "unknown")


def rules(class_, *, certain):
    return Diagnosis(
        class_=class_, signature="s", root_cause="r", confidence=0.9, certain=certain, provisional=not certain,
        log_read=True, made_at=START,
    )  # fmt: skip


def one_incident(chance):
    """Live through an incident: signals change the rules' mind, the model sleeps, lies, answers; workers crash.

    Returns what a server counted, which knows nothing of reservations.
    """
    now, held, used = START, None, Spend()
    word = ModelExplanation(class_="host_oom", root_cause="r", prompt="p", model="m")
    for _ in range(chance.randint(1, 60)):
        now += timedelta(seconds=chance.randint(1, 90))
        if held is None or chance.random() < 0.15:
            found = rules(chance.choice(CLASSES), certain=chance.random() < 0.5)
            held = start_request(held, found, when=When.ALWAYS, wake=When.UNCERTAIN, plan_from=now, now=now)
        if not held.due(now):
            continue
        cap, reserved = round_cap(held), held.reserved(now)
        if reserved is None:
            held = held.give_up("its cap is reached")
            continue
        assert cap.within(ROUND_CAP)
        cost = Spend(
            calls=chance.randint(0, cap.calls),
            tokens=chance.randint(0, cap.tokens),
            seconds=round(chance.uniform(0, cap.seconds), 3),
        )
        used = used.plus(cost)
        held = reserved
        if chance.random() < 0.1:
            continue  # the worker died: what it reserved stays paid
        paid = held.with_(spent=held.spent.minus(cap).plus(cost))
        end = chance.random()
        held = paid.answered(word, ()) if end < 0.3 else paid.again(now, "asleep") if end < 0.8 else paid.give_up("no")
    return used, held


def test_no_cap_is_exceeded_in_a_thousand_incidents():
    """What the model really cost stays below every cap, and below what the incident says of itself."""
    totals = []
    for seed in range(1000):
        used, held = one_incident(random.Random(seed))
        assert used.within(INCIDENT_CAP), seed
        assert used.tokens <= held.spent.tokens, seed
        assert used.calls <= held.spent.calls, seed
        totals.append(used.tokens)
    assert max(totals) > INCIDENT_CAP.tokens / 2  # the caps were in reach


def test_every_explanation_comes_to_an_end():
    """A model that never answers is given up within a quarter of an hour and a round."""
    held, now = (
        start_request(
            None, rules("host_oom", certain=True), when=When.ALWAYS, wake=When.ALWAYS, plan_from=START, now=START
        ),
        START,
    )
    while held.state is Explanation.WANTED:
        now = held.next_at
        reserved = held.reserved(now)
        held = reserved.again(now, "asleep") if reserved is not None else held.give_up("over")
        assert now - START <= timedelta(seconds=GIVE_UP_S + ROUND_CAP.seconds)
