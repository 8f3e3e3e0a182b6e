"""The forms of change requests: our own page, this person and browser, typed words; everything else stores nothing."""

import re
from dataclasses import replace
from html import unescape

import pytest

from agent.core.decision.policy import Policy
from agent.core.incident.phase import Phase
from agent.core.plan.action import SetConcurrency, SetFlag, SetInstanceType
from agent.core.service.services import parse_services
from agent.entrypoints.console.app import make_app
from agent.entrypoints.console.forms import COOKIE
from agent.ports.store import Change, Query
from agent.settings import Settings

SERVICE = "gemma-asked"
BASE = "http://127.0.0.1:8080"
ORIGIN = {"Origin": BASE}
RESTART = {"form": "lifecycle", "lifecycle": "restart"}
WATCHED = parse_services(
    {"service": [{"name": SERVICE, "platform": "host", "model": "m", "accelerator": "cpu", "owner": "console"}]}
)
POLICY = Policy(flags={"max-model-len": "whole 256..131072"}, max_concurrency=64)


@pytest.fixture
def world(theatre):
    world = theatre.a_world(theatre.Clock(), POLICY)
    return replace(world, rules=replace(world.rules, services=WATCHED))


@pytest.fixture
def browser(world):
    """A browser that has opened the service's page."""
    client = make_app(world, settings=Settings(), operator="ada").test_client()
    page = client.get(f"/services/{SERVICE}", base_url=BASE).get_data(as_text=True)
    client.token = re.search(r'name="token" value="([0-9a-f]{64})"', page)[1]
    client.page = page
    return client


def post(browser, fields, *, headers=None, service=SERVICE, token=None):
    said = {"token": browser.token if token is None else token, "why": "longer documents"} | fields
    return browser.post(f"/services/{service}/requests", data=said, headers=headers or ORIGIN, base_url=BASE)


def recorded(world):
    return world.store.incidents(Query())


def test_the_page_has_the_form_and_needs_no_script(browser):
    assert f'action="/services/{SERVICE}/requests#change"' in browser.page
    assert "<script" not in browser.page
    assert "You ask as ada, which is not verified" in browser.page
    assert "max-model-len" in browser.page


def test_a_filled_form_is_a_request_that_leads_to_its_page(browser, world):
    sent = {"set_flag": "max-model-len=32768\r\n", "concurrency": "8"}
    answer = post(browser, sent)
    (life,) = recorded(world)
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/incidents/{life.id}")
    assert life.request.actions == (SetFlag(name="max-model-len", value="32768"), SetConcurrency(concurrency=8))
    assert (life.request.asker, life.request.channel, life.phase) == ("ada", "console", Phase.OPEN)
    page = browser.get(f"/incidents/{life.id}", base_url=BASE).get_data(as_text=True)
    assert "ada (not verified) asks for a change: longer documents" in page
    assert life.id in browser.get(f"/services/{SERVICE}", base_url=BASE).get_data(as_text=True)


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ({"headers": {"Origin": "https://evil.example"}}, 403),
        ({"headers": {"Sec-Fetch-Site": "cross-site", **ORIGIN}}, 403),
        ({"headers": {"X": "no origin"}}, 403),
        ({"token": "0" * 64}, 403),
        ({"token": ""}, 403),
        ({"service": "another"}, 404),
    ],
    ids=["another origin", "another site", "no origin", "made-up token", "no token", "another service"],
)
def test_what_is_not_our_own_form_stores_nothing(browser, world, how, status):
    assert post(browser, RESTART, **how).status_code == status
    assert recorded(world) == ()


def test_a_token_is_good_for_its_browser_alone(browser, world):
    browser.set_cookie(COOKIE, "another-browser-0000", domain="127.0.0.1")
    assert post(browser, RESTART).status_code == 403
    assert recorded(world) == ()


@pytest.mark.parametrize(
    ("fields", "status", "says"),
    [
        ({}, 400, "Nothing is asked for"),
        (RESTART | {"why": " "}, 400, "needs a reason"),
        ({"set_flag": "api-key=x"}, 403, "not on the allow-list"),
        ({"set_flag": "max-model-len=1\nmax-model-len=2"}, 400, "has two values"),
        ({"scale": "many"}, 400, "no MIN:MAX"),
        ({"set_flag": "\n".join(f"f{n}=1" for n in range(17))}, 400, "more than 16 settings at once"),
    ],
    ids=["nothing", "no reason", "never flag", "two values", "scale", "too many"],
)
def test_what_cannot_be_says_why_and_stores_nothing(browser, world, fields, status, says):
    answer = post(browser, fields)
    assert answer.status_code == status
    assert says.casefold() in answer.get_data(as_text=True).replace("&#39;", "'").casefold()
    assert recorded(world) == ()


def test_a_second_request_is_told_of_the_first(browser, world):
    post(browser, RESTART)
    assert post(browser, {"concurrency": "4"}).status_code == 409
    assert post(browser, {"concurrency": "4", "supersede": "1"}).status_code == 303


def test_a_get_asks_for_nothing(browser, world):
    assert browser.get(f"/services/{SERVICE}/requests", base_url=BASE).status_code == 405
    assert recorded(world) == ()


def test_markup_in_a_reason_stays_text(browser, world):
    post(browser, RESTART | {"why": "<script>alert(1)</script>"})
    (life,) = recorded(world)
    page = browser.get(f"/incidents/{life.id}?still=1", base_url=BASE).get_data(as_text=True)  # without our own script
    assert "alert(1)" in page
    assert "<script" not in page


def asked_for(browser, world):
    """Ask for a restart; return the request."""
    post(browser, RESTART)
    return recorded(world)[0]


def withdrawal(browser, life):
    """The token of the button on the request's page, or None where there is none."""
    page = browser.get(f"/incidents/{life.id}", base_url=BASE).get_data(as_text=True)
    form = re.search(rf'action="/requests/{life.id}/withdrawal".*?</form>', page, re.DOTALL)
    return re.search(r'name="token" value="([0-9a-f]{64})"', form[0])[1] if form else None


def withdraw(browser, life, *, token, why="", headers=None, of=None):
    said = {"token": token, "why": why}
    return browser.post(f"/requests/{of or life.id}/withdrawal", data=said, headers=headers or ORIGIN, base_url=BASE)


@pytest.mark.parametrize(("why", "kept"), [("a typing error", "a typing error"), ("", "no reason given")])
def test_who_asked_withdraws_it_on_its_page_and_that_is_on_record(browser, world, why, kept):
    life = asked_for(browser, world)
    answer = withdraw(browser, life, token=withdrawal(browser, life), why=why)
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/incidents/{life.id}")
    (now,) = recorded(world)
    assert (now.phase, now.ended_why) == (Phase.WITHDRAWN, f"ada took it back: {kept}")
    assert [(row.kind, row.who) for row in world.control.audit()][-1] == ("request.withdrawn", "ada")
    page = browser.get(f"/incidents/{life.id}", base_url=BASE).get_data(as_text=True)
    assert "The request was taken back before anybody approved it." in page
    assert withdrawal(browser, life) is None


def test_the_button_pressed_twice_withdraws_once(browser, world):
    life = asked_for(browser, world)
    token = withdrawal(browser, life)
    assert [withdraw(browser, life, token=token).status_code for _ in range(2)] == [303, 303]
    assert [row.kind for row in world.control.audit()].count("request.withdrawn") == 1


def test_somebody_else_has_no_button_and_cannot_press_the_askers(browser, world):
    life = asked_for(browser, world)
    token = withdrawal(browser, life)
    ben = make_app(world, settings=Settings(), operator="ben").test_client()
    assert withdrawal(ben, life) is None
    cookie = browser.get_cookie(COOKIE, domain="127.0.0.1").value
    ben.set_cookie(COOKIE, cookie, domain="127.0.0.1")
    assert withdraw(ben, life, token=token).status_code == 403
    assert recorded(world)[0].phase is Phase.OPEN


@pytest.mark.parametrize(
    "how",
    [
        {"headers": {"Origin": "https://evil.example"}},
        {"headers": {"Sec-Fetch-Site": "cross-site", **ORIGIN}},
        {"headers": {"X": "no origin"}},
        {"token": "0" * 64},
        {"token": ""},
        {"token": "of the service's form"},
    ],
    ids=["another origin", "another site", "no origin", "made-up token", "no token", "token of another form"],
)
def test_what_is_not_the_button_withdraws_nothing(browser, world, how):
    life = asked_for(browser, world)
    given = {"token": withdrawal(browser, life)} | how
    if given["token"] == "of the service's form":
        given["token"] = browser.token
    answer = withdraw(browser, life, **given)
    assert (answer.status_code, "The request was not withdrawn" in answer.get_data(as_text=True)) == (403, True)
    assert recorded(world)[0].phase is Phase.OPEN


def test_what_is_no_request_is_not_found_and_a_get_withdraws_nothing(browser, world):
    life = asked_for(browser, world)
    assert withdraw(browser, life, token=withdrawal(browser, life), of="inc-1").status_code == 404
    assert browser.get(f"/requests/{life.id}/withdrawal", base_url=BASE).status_code == 405
    assert recorded(world)[0].phase is Phase.OPEN


def test_approved_while_the_page_was_open_it_is_not_withdrawn_any_more(browser, world):
    life = asked_for(browser, world)
    token = withdrawal(browser, life)
    for phase in (Phase.PLANNED, Phase.ASKED, Phase.APPROVED):
        life = world.store.commit(Change(incident=life.move(phase, now=world.clock.now())))
    assert withdrawal(browser, life) is None
    answer = withdraw(browser, life, token=token)
    assert (answer.status_code, "It is APPROVED" in answer.get_data(as_text=True)) == (403, True)
    assert recorded(world)[0].phase is Phase.APPROVED


RENTED = "gemma-rented"
INSTANCE = {"platform": "ec2", "location": "us-east-1", "instance": "i-0abc1234def567890", "unit": "vllm.service"}
ON_EC2 = {"name": RENTED, "model": "google/gemma-4-12B-it-qat-w4a16-ct", "accelerator": "nvidia-l4", "owner": "console"}
LARGER = {"instance_type": "g6.2xlarge"}


@pytest.fixture
def rented(theatre):
    """A world whose service runs on EC2, and its browser."""
    world = theatre.a_world(theatre.Clock(), POLICY.with_(accelerators=("nvidia-l4",)))
    world = replace(world, rules=replace(world.rules, services=parse_services({"service": [ON_EC2 | INSTANCE]})))
    client = make_app(world, settings=Settings(), operator="ada").test_client()
    client.page = client.get(f"/services/{RENTED}", base_url=BASE).get_data(as_text=True)
    client.token = re.search(r'name="token" value="([0-9a-f]{64})"', client.page)[1]
    return client, world


def test_another_instance_type_is_asked_for_on_ec2_alone(rented, browser):
    """What the type has comes from prices.toml, as on the command line; no other platform shows the field."""
    client, world = rented
    assert 'name="instance_type"' in client.page
    assert "instance_type" not in browser.page
    assert post(client, LARGER, service=RENTED).status_code == 303
    (life,) = recorded(world)
    assert life.request.actions == (
        SetInstanceType(
            instance_type="g6.2xlarge", accelerator="nvidia-l4", accelerator_count=1, cpu=8, memory_mib=32_768
        ),
    )


def test_an_instance_type_on_another_platform_is_refused_where_it_was_typed(browser, world):
    """Sent by hand: the field is shown with what is wrong, and nothing is stored."""
    answer = post(browser, LARGER)
    text = unescape(answer.get_data(as_text=True))
    assert answer.status_code == 400
    field = re.search(r'<input id="instance_type".*?</p>', text, re.DOTALL)[0]
    assert 'value="g6.2xlarge"' in field
    assert "and that the service runs on EC2" in field
    assert recorded(world) == ()


@pytest.mark.parametrize(
    ("fields", "status", "says"),
    [
        ({"instance_type": "g99.xlarge"}, 400, "'g99.xlarge' has is not known here"),
        ({"instance_type": "g5.xlarge"}, 403, "'nvidia-a10g' is not on the list of the policy"),
        (LARGER | {"concurrency": "2"}, 400, "stands alone, without another change"),
    ],
    ids=["unknown type", "accelerator that policy does not list", "with another change"],
)
def test_an_instance_type_that_cannot_be_says_why_beside_its_field(rented, fields, status, says):
    client, world = rented
    answer = post(client, fields, service=RENTED)
    field = re.search(r'<input id="instance_type".*?</p>', unescape(answer.get_data(as_text=True)), re.DOTALL)[0]
    assert (answer.status_code, 'aria-invalid="true"' in field) == (status, True)
    assert says in field
    assert recorded(world) == ()
