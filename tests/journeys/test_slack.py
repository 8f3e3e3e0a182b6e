"""From a log event to RESOLVED through Slack's own wire: one message, buttons that count, every phase in place."""

import threading

import pytest
from slack_sdk import WebClient
from werkzeug.serving import make_server

from agent.adapters.notifier.slack import SlackNotifier
from agent.adapters.store.sqlite.cards import SqliteCards
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.app.redaction import redact
from agent.core.decision.approvals import Approvals, Escalation
from agent.core.decision.policy import Approver
from agent.core.incident.phase import Phase
from agent.entrypoints.http.decide import beside
from agent.entrypoints.http.decide_service import DecideService
from agent.entrypoints.service import handlers
from agent.ports.stage_context import Owner
from agent.presentation.slack_card import APPROVE, REJECT
from agent.stages.tell import NotifyInProgress, tell_people
from tests.journeys import fake_slack

PROBE = "gemma4-26b-l4-startup-probe"
SECRET = b"8f742231b10e8888abcd99yyyzzz85a5"
ADA = Approver(name="Ada", slack="U0ADA", services=("gemma4-*",))


class Team:
    """A service, a Slack, and the deciding function behind a web server of its own."""

    def __init__(self, told):
        self.told, self.slack, self.replies = told, fake_slack.FakeSlack(SECRET), []
        self.notifier = self.new_notifier()
        for owner, world in list(told.installation.contexts.items()):
            known = world.rules
            known = type(known)(**(vars(known) | {"policy": known.policy.with_(approvers=(ADA,))}))
            changes = {"rules": known, "notifiers": {"slack": self.notifier}}
            told.installation.contexts[owner] = type(world)(**(vars(world) | changes))
        told.work = told.installation.worker(handlers(told.installation), threads=1).run_due
        gate = DecideService(
            context=told.installation.contexts[Owner.DECIDE],
            clock=told.clock,
            slack_secret=SECRET,
            reply=lambda url, text: self.replies.append(text),
        )
        self.server = make_server("127.0.0.1", 0, beside(_elsewhere, gate), threaded=True)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def new_notifier(self, owner=""):
        client = WebClient(token=fake_slack.TOKEN, base_url=self.slack.url, retry_handlers=[])
        url = "https://console.example.com"
        return SlackNotifier(client, channel="C0SRE", redact=redact, console_url=url, owner_of=lambda _: owner)

    def press(self, action, *, user="U0ADA", times=1, typed=""):
        url = f"http://127.0.0.1:{self.server.server_port}/slack/actions"
        return self.slack.press(url, action, user=user, now=self.told.clock.now(), times=times, typed=typed)

    def asked(self):
        """Go on until people can see the buttons."""
        incident = self.told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
        self.told.go(20)
        return incident

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
        self.slack.close()


def _elsewhere(environ, start):
    start("404 NOT FOUND", [])
    return [b""]


@pytest.fixture
def team(journey):
    made = []

    def make(example=PROBE):
        made.append(Team(journey(example)))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_from_a_log_event_to_resolved_in_one_message(team):
    here = team()
    here.asked()
    assert set(here.slack.buttons()) >= {APPROVE, REJECT}
    [(status, body, took_s)] = here.press(APPROVE)
    assert (status, body) == (200, b"")
    assert took_s < 3
    ended = here.told.until(lambda i: i.ended, limit_s=900)
    here.told.go(30)
    assert ended.phase is Phase.RESOLVED
    assert len(here.slack.messages) == 1
    methods = [method for method, _ in here.slack.history]
    assert methods[0] == "chat.postMessage"
    assert set(methods[1:]) == {"chat.update", "chat.postMessage"}
    assert methods.count("chat.postMessage") == 1 + len(here.slack.replies)
    assert here.slack.errors == []
    said = " | ".join(arguments["text"] for _, arguments in here.slack.history)
    for words in ("Needs approval", "Resolved"):
        assert words in said
    last = str(here.slack.messages)
    assert "*Approved* by Ada through slack" in last
    assert here.slack.buttons() == {}
    assert here.replies == []


def test_double_clicks_are_one_decision(team):
    here = team()
    here.asked()
    assert [status for status, _, _ in here.press(APPROVE, times=4)] == [200] * 4
    decided = [r for r in here.told.installation.control.audit() if r.kind.startswith("decision")]
    assert len(decided) == 1
    assert here.replies == []


def test_the_wrong_person_is_told_and_nothing_moves(team):
    here = team()
    incident = here.asked()
    assert here.press(APPROVE, user="U0EVE")[0][0] == 200
    assert "names no approver" in here.replies[0]
    assert here.told.installation.store.load(incident.id).phase is Phase.ASKED


def test_after_a_reject_the_message_says_who_and_asks_about_the_next_plan(team):
    here = team()
    here.asked()
    before = here.slack.buttons()[APPROVE]["value"]
    here.press(REJECT)
    here.told.go(30)
    assert "rejected by Ada through slack" in str(here.slack.messages)
    assert here.slack.buttons().get(APPROVE, {}).get("value") != before
    assert "rejected by Ada through slack: no reason given" in str(here.slack.messages)


def test_the_reason_of_a_rejection_is_typed_into_the_message_and_shown_harmless(team):
    """It goes where every channel's reason goes; it cannot ping or link, and a secret in it is not kept."""
    here = team()
    incident = here.asked()
    here.press(REJECT, typed="  too dear, <!channel> ask https://evil.example hf_" + "Ab3" * 11 + "x  ")
    here.told.go(30)
    [row] = [r for r in here.told.installation.control.audit() if r.kind == "decision.reject"]
    event = next(e for e in here.told.installation.store.timeline(incident.id) if e.phase is Phase.REJECTED)
    assert "rejected by Ada through slack: too dear, <!channel> ask" in event.what
    shown = str(here.slack.messages)
    assert "through slack: too dear" in shown
    assert "<!channel>" not in shown
    assert "https://evil" not in shown
    for kept in (row.body, event.what, shown):
        assert "hf_Ab3" not in kept
    assert here.slack.errors == []


def test_a_rate_limit_is_kept_and_the_incident_goes_on(team):
    """Slack says "later": we say nothing until then, and what is shown in the end is the end."""
    here = team()
    here.slack.limited, here.slack.retry_after = 3, 0
    here.told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    here.told.go(120)
    assert len(here.slack.messages) == 1
    assert here.slack.buttons()
    here.press(APPROVE)
    here.told.until(lambda i: i.ended, limit_s=900)
    here.told.go(120)
    assert "Resolved" in next(iter(here.slack.messages.values()))["text"]


def test_a_slack_that_is_down_stops_nothing(team):
    """Telling fails open: another channel decides, the change is made, and the message comes when Slack is back."""
    here = team()
    here.slack.broken = 10**6
    incident = here.told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    here.told.answer(incident.plan.id)
    ended = here.told.until(lambda i: i.ended, limit_s=900)
    assert ended.phase is Phase.RESOLVED
    assert here.slack.messages == {}
    here.slack.broken = 0
    here.told.go(1300)
    assert len(here.slack.messages) == 1
    assert "Resolved" in next(iter(here.slack.messages.values()))["text"]


def test_a_new_process_changes_the_message_of_the_old_one(team):
    here = team()
    incident = here.asked()
    store, cards = here.told.installation.store, here.told.installation.contexts[Owner.INCIDENT].cards
    before = cards.card(incident.id, "slack")
    moved = store.load(incident.id).with_(version=99, ended_why="seen by another process")
    after = here.new_notifier().tell(moved, store.timeline(incident.id), reference=before)
    assert len(here.slack.messages) == 1
    assert after.rsplit("/", 1)[0] == before.rsplit("/", 1)[0]
    assert "seen by another process" in str(here.slack.messages)


def test_what_stands_there_already_is_not_sent_again(team):
    here = team()
    incident = here.asked()
    count = len(here.slack.history)
    store = here.told.installation.store
    for _ in range(5):
        here.notifier.tell(store.load(incident.id), store.timeline(incident.id), reference=None)
    assert len(here.slack.history) == count


def in_thread(here):
    """Every line that stands in the thread, without its time of day."""
    return [line[13:] for reply in here.slack.replies for line in reply.split("\n")]


def test_each_step_is_one_line_in_the_thread_and_none_stands_twice(team):
    """Who approved, that the change began, that it is ready, and how it ended; a redelivery says nothing more."""
    here = team()
    incident = here.asked()
    assert here.slack.replies == []
    here.press(APPROVE)
    ended = here.told.until(lambda i: i.ended, limit_s=900)
    here.told.go(30)
    said = in_thread(here)
    assert [line.partition(" ")[0] for line in said] != []
    approved, began, ready, resolved = said
    assert f"Plan {incident.plan.id} approved by Ada through slack" in approved or "approved by Ada" in approved
    assert "its change was ordered" in began
    assert "whether the service works is being measured" in ready
    assert "It took" in resolved
    store = here.told.installation.store
    cards = here.told.installation.contexts[Owner.INCIDENT].cards
    count = len(here.slack.history)
    for notifier in (here.notifier, here.new_notifier()):
        notifier.tell(ended, store.timeline(ended.id), reference=cards.card(ended.id, "slack"))
    assert len(here.slack.history) == count
    assert here.slack.errors == []


def test_a_thread_that_slack_held_up_is_told_whole_and_once(team):
    """The update is taken and the reply is not: it is said again with what came after it."""
    here = team()
    incident = here.asked()
    here.press(APPROVE)
    store = here.told.installation.store
    here.slack.limited, here.slack.retry_after = 2, 0
    here.told.until(lambda i: i.ended, limit_s=900)
    here.told.go(60)
    said = in_thread(here)
    assert len(said) == len(set(said)) == 4
    assert store.load(incident.id).phase is Phase.RESOLVED


def told_in_turn(here):
    """Two instances tell of an incident in turn, each from the reference that the other kept."""
    here.slack.broken = 10**6
    asked = here.told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    here.told.answer(asked.plan.id)
    ended = here.told.until(lambda i: i.ended, limit_s=900)
    here.slack.broken = 0
    timeline = here.told.installation.store.timeline(ended.id)
    first = len([event for event in timeline if event.at <= asked.phase_at])
    instances, reference = (here.new_notifier(), here.new_notifier()), None
    for told in range(first, len(timeline) + 1):
        shown = ended.with_(version=told, ended_why=f"state {told}")
        reference = instances[told % 2].tell(shown, timeline[:told], reference=reference)
    return ended, timeline, instances, reference


def test_an_instance_does_not_repeat_what_another_told_since(team):
    """What this process remembers of the thread is older than what the store keeps of it."""
    here = team()
    told_in_turn(here)
    said = in_thread(here)
    assert len(said) == len(set(said)) == 4
    assert len(here.slack.messages) == 1


@pytest.mark.parametrize("told", [1, 99], ids=["older state", "newer state of an older timeline"])
def test_nobody_takes_back_how_much_was_told(team, told):
    """An instance that comes late with less must not have the others say the rest again."""
    here = team()
    ended, timeline, instances, reference = told_in_turn(here)
    said = in_thread(here)
    late, other = instances[(len(timeline) - 1) % 2], here.new_notifier()
    after = late.tell(ended.with_(version=told), timeline[:-1], reference=reference)
    other.tell(ended.with_(version=100), timeline, reference=after)
    assert in_thread(here) == said


def test_a_message_of_an_earlier_version_gets_no_old_steps_in_its_thread(team):
    here = team()
    incident = here.asked()
    here.press(APPROVE)
    here.told.go(5)
    store, cards = here.told.installation.store, here.told.installation.contexts[Owner.INCIDENT].cards
    old = "/".join(part.partition(".")[0] if n == 2 else part
                   for n, part in enumerate(cards.card(incident.id, "slack").split("/")))  # fmt: skip
    before = list(here.slack.replies)
    moved = store.load(incident.id).with_(version=99, ended_why="seen by another process")
    after = here.new_notifier().tell(moved, store.timeline(incident.id), reference=old)
    assert here.slack.replies == before
    assert after.endswith(f".{len(store.timeline(incident.id))}")


def test_text_of_others_is_harmless_in_the_thread(team):
    here = team()
    here.asked()
    here.press(REJECT, typed="<!channel> hf_" + "Ab3" * 11 + "x https://evil.example")
    here.told.go(30)
    (said,) = [line for line in in_thread(here) if "rejected by Ada" in line]
    assert "<!channel>" not in said
    assert "hf_Ab3" not in said
    assert "https://evil" not in said


def test_a_group_that_is_told_later_is_mentioned_once_in_a_reply(team):
    """A changed message notifies nobody; a name that is no id of Slack's form is no mention."""
    here = team()
    incident = here.asked()
    here.notifier = here.new_notifier()
    store, cards = here.told.installation.store, here.told.installation.contexts[Owner.INCIDENT].cards
    timeline, before = store.timeline(incident.id), cards.card(incident.id, "slack")
    leads = Escalation(group="leads", at=incident.phase_at, names=("Ben",), slack=("U0BEN", "!channel"))
    told = Approvals(plan=incident.plan.id, escalations=(leads,), groups_notified=1)
    current = store.load(incident.id)
    for version in (97, 98):
        shown = current.with_(version=version, approvals=told, ended_why=f"state {version}")
        before = here.notifier.tell(shown, timeline, reference=before)
    replies = [arguments for _, arguments in here.slack.history if "thread_ts" in arguments]
    assert [(r["thread_ts"], r["text"]) for r in replies] == [
        (before.split("/")[1], f"<@U0BEN> Nobody has answered {incident.plan.id} for {incident.service} yet.")
    ]
    assert before.endswith("/1")


def test_where_nobody_reacts_the_owner_is_mentioned_and_the_channel_sees_it_too(team):
    """Each reminder once; who has reacted meanwhile is mentioned no more, and the line stands in the thread alone."""
    here = team()
    incident = here.asked()
    here.told.go(900)
    store, cards = here.told.installation.store, here.told.installation.contexts[Owner.INCIDENT].cards
    (reply,) = [arguments for _, arguments in here.slack.history if "thread_ts" in arguments]
    assert reply["reply_broadcast"] is True
    assert reply["text"].endswith("UTC Nobody has answered or acknowledged it for 15 min.")
    current, timeline = store.load(incident.id), store.timeline(incident.id)
    before = cards.card(incident.id, "slack")
    for number, seen in enumerate(("", "Ada"), 1):
        shown = current.with_(version=90 + number, assignee=seen, ended_why=f"state {number}")
        timeline = (*timeline, timeline[-1])
        before = here.new_notifier("slack:U0ADA").tell(shown, timeline, reference=before)
    called, quiet = [arguments for _, arguments in here.slack.history if "thread_ts" in arguments][1:]
    assert (called["text"].split("\n")[0], called["reply_broadcast"]) == ("<@U0ADA>", True)
    assert ("<@U0ADA>" in quiet["text"], "reply_broadcast" in quiet) == (False, False)


def test_an_older_state_never_replaces_a_newer_one(team):
    here = team()
    incident = here.asked()
    store = here.told.installation.store
    old = incident.with_(version=1, service="an old state")
    here.notifier.tell(old, store.timeline(incident.id), reference=None)
    assert "an old state" not in str(here.slack.messages)


def test_racing_tellings_post_one_message(team):
    here = team()
    incident = here.told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    here.slack.messages.clear()
    notifier, timeline = here.new_notifier(), here.told.installation.store.timeline(incident.id)
    threads = [
        threading.Thread(target=notifier.tell, args=(incident.with_(version=n), timeline), kwargs={"reference": None})
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(here.slack.messages) == 1


def instances(here, tmp_path, count=2):
    """Function instances: each with a notifier and a handle to the cards of its own, over one incident."""
    known = here.told.installation.contexts[Owner.INCIDENT]
    made, databases = [], []
    for n in range(count):
        databases.append(SqliteDatabase(tmp_path / "cards.db", Kind.STATE))
        more = {"holder": f"instance-{n}", "notifiers": {"slack": here.new_notifier()}}
        made.append(type(known)(**(vars(known) | more | {"cards": SqliteCards(databases[-1])})))
    return made, databases


def test_two_instances_with_many_threads_post_one_message(team, tmp_path):
    here = team()
    here.slack.broken = 10**6
    incident = here.told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    here.slack.broken = 0
    worlds, databases = instances(here, tmp_path)
    begin, failed = threading.Barrier(12), []

    def tell(world):
        begin.wait()
        failed.extend(tell_people(world, incident.id).values())

    threads = [threading.Thread(target=tell, args=(worlds[n % 2],)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    methods = [method for method, _ in here.slack.history]
    assert methods.count("chat.postMessage") == 1
    assert len(here.slack.messages) == 1
    assert all(isinstance(error, NotifyInProgress) for error in failed), failed
    assert [tell_people(world, incident.id) for world in worlds] == [{}, {}]
    assert [method for method, _ in here.slack.history].count("chat.postMessage") == 1
    for database in databases:
        database.close()


def test_an_instance_that_died_over_its_first_message_does_not_silence_the_incident(team, tmp_path):
    """Its claim is over after two minutes; then another one posts, and a message that had come out stands twice."""
    here = team()
    here.slack.broken = 10**6
    incident = here.told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    here.slack.broken = 0
    (_, other), databases = instances(here, tmp_path)
    other.cards.claim_card(incident.id, "slack", "dead", reference=None, now=here.told.clock.now(), for_s=120)
    assert isinstance(tell_people(other, incident.id)["slack"], NotifyInProgress)
    assert here.slack.messages == {}
    here.told.clock.step(120)
    assert tell_people(other, incident.id) == {}
    assert len(here.slack.messages) == 1
    for database in databases:
        database.close()
