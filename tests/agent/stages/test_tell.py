"""Who shows an incident claims that first; what failed is free at once, and nobody is silenced for ever."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.adapters.store.sqlite.cards import SqliteCards
from agent.adapters.store.sqlite.in_memory import InMemoryDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.app import build_app_in_memory
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import Phase
from agent.entrypoints.cli.analysis import SteppedClock
from agent.errors import DependencyFailed
from agent.ports.stage_context import Owner, StageContext
from agent.ports.store import Change
from agent.settings import read_settings
from agent.stages.tell import CLAIM_S, NotifyInProgress, tell_people

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"
T0 = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


class Told:
    """A notifier that notes what it showed, and does first what it is told to do."""

    def __init__(self) -> None:
        self.first, self.references, self.lines = lambda: None, [], []

    def tell(self, incident, timeline, *, reference):
        self.first()
        self.references.append(reference)
        known = int(reference.partition("-")[2]) if reference else 0
        self.lines += [event.what for event in timeline[known:]]
        return f"place-{len(timeline)}"


class Unkept(SqliteCards):
    """Cards that cannot be written once a message came out."""

    broken = True

    def keep_card(self, incident_id: str, notifier: str, reference: str) -> None:
        if self.broken:
            raise DependencyFailed("not kept", why="a test", hint="none")
        super().keep_card(incident_id, notifier, reference)


@pytest.fixture
def scene(tmp_path: Path) -> tuple[StageContext, Told, SteppedClock]:
    """One instance with one incident to tell of."""
    clock = SteppedClock(T0)
    settings = read_settings({}, platform=f"rehearsal:{EXAMPLE}")
    told = Told()
    context = build_app_in_memory(settings, clock=clock, state=tmp_path).contexts[Owner.INCIDENT]
    context = replace(context, notifiers={"slack": told}, holder="one")
    incident = Incident(id="inc-a", service="s", platform="p", opened_at=T0, phase_at=T0, quiet_since=T0)
    context.store.commit(Change(incident=incident, events=(Event(at=T0, phase=Phase.OPEN, what="opened"),)))
    return context, told, clock


def rival(context: StageContext) -> StageContext:
    """Another instance over the same store and cards."""
    return replace(context, holder="two")


def refuse() -> None:
    raise DependencyFailed("not told", why="a test", hint="none")


class Remembering(Told):
    """One that knows which version it left where."""

    def __init__(self) -> None:
        super().__init__()
        self.left = None

    def tell(self, incident, timeline, *, reference):
        found = super().tell(incident, timeline, reference=reference)
        self.left = (incident.version, found)
        return found

    def shows(self, incident, *, reference):
        return self.left == (incident.version, reference)


class CountedClaims(SqliteCards):
    """Cards that count how often the right to show an incident was taken."""

    claims = 0

    def claim_card(self, *args, **more):
        self.claims += 1
        return super().claim_card(*args, **more)


def test_what_a_notifier_has_shown_already_is_not_claimed_again(scene) -> None:
    """Each claim is a write; a message that somebody else changed since, or a newer version, is claimed."""
    context, _, _ = scene
    cards, told = CountedClaims(context.store._database), Remembering()
    context = replace(context, cards=cards, notifiers={"slack": told})
    tell_people(context, "inc-a")
    tell_people(context, "inc-a")
    assert (cards.claims, len(told.references)) == (1, 1)
    cards.keep_card("inc-a", "slack", "place-0")
    tell_people(context, "inc-a")
    assert (cards.claims, told.references) == (2, [None, "place-0"])
    incident = context.store.load("inc-a")
    event = Event(at=T0, phase=Phase.OPEN, what="more")
    context.store.commit(Change(incident=incident, events=(event,)))
    tell_people(context, "inc-a")
    assert (cards.claims, told.lines[-1]) == (3, "more")


def test_who_comes_while_the_first_message_is_sent_sends_none_and_changes_it_later(scene) -> None:
    context, told, _ = scene
    met = []

    def meanwhile() -> None:
        told.first = lambda: None
        met.append(tell_people(rival(context), "inc-a"))

    told.first = meanwhile
    assert tell_people(context, "inc-a") == {}
    assert [type(error) for error in met[0].values()] == [NotifyInProgress]
    assert tell_people(rival(context), "inc-a") == {}
    assert told.references == [None, "place-1"]


def test_of_two_who_tell_of_one_step_at_the_same_moment_one_says_it(scene) -> None:
    """Both saw the message as it stood before; the second is refused, and finds nothing left to say later."""
    context, told, _ = scene
    assert tell_people(context, "inc-a") == {}
    incident = context.store.load("inc-a")
    context.store.commit(Change(incident=incident, events=(Event(at=T0, phase=Phase.OPEN, what="moved"),)))
    met = []

    def meanwhile() -> None:
        told.first = lambda: None
        met.append(tell_people(rival(context), "inc-a"))

    told.first = meanwhile
    assert tell_people(context, "inc-a") == {}
    assert [type(error) for error in met[0].values()] == [NotifyInProgress]
    assert tell_people(rival(context), "inc-a") == {}
    assert told.lines == ["opened", "moved"]


def test_what_was_not_told_is_free_at_once_for_whoever_comes_next(scene) -> None:
    context, told, _ = scene
    told.first = refuse
    assert set(tell_people(context, "inc-a")) == {"slack"}
    told.first = lambda: None
    assert tell_people(rival(context), "inc-a") == {}
    assert told.references == [None]


def test_a_worker_that_dies_over_it_keeps_it_for_two_minutes_and_no_longer(scene) -> None:
    context, told, clock = scene

    class Died(BaseException):
        pass

    def die() -> None:
        raise Died

    told.first = die
    with pytest.raises(Died):
        tell_people(context, "inc-a")
    told.first = lambda: None
    other = rival(context)
    clock.step(CLAIM_S - 1)
    assert isinstance(tell_people(other, "inc-a")["slack"], NotifyInProgress)
    assert told.references == []
    clock.step(1)
    assert tell_people(other, "inc-a") == {}
    assert told.references == [None]
    assert other.cards.card("inc-a", "slack") == "place-1"


def test_a_message_that_came_out_is_not_sent_again_because_its_place_was_not_kept(scene) -> None:
    """The claim stays with who sent it: it knows the place, and gives it when it comes again."""
    context, told, _ = scene
    cards = Unkept(InMemoryDatabase(Kind.STATE))
    context = replace(context, cards=cards)
    assert set(tell_people(context, "inc-a")) == {"slack"}
    cards.broken = False
    assert isinstance(tell_people(rival(context), "inc-a")["slack"], NotifyInProgress)
    assert told.references == [None]


def test_a_message_that_was_kept_meanwhile_is_changed_at_once(scene) -> None:
    """Between the look and the claim another worker ended: there is nothing to wait for."""
    context, told, _ = scene

    class Late(SqliteCards):
        looked = False

        def card(self, incident_id: str, notifier: str) -> str | None:
            found = super().card(incident_id, notifier)
            if not self.looked:
                self.looked = True
                self.keep_card(incident_id, notifier, "place-9")
            return found

    assert tell_people(replace(context, cards=Late(InMemoryDatabase(Kind.STATE))), "inc-a") == {}
    assert told.references == ["place-9"]
