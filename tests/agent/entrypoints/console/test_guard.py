"""What stands before every page: this machine only, and headers that leave a stolen page without teeth."""

import pytest

from agent.core.decision.decision import Channel, Person
from agent.core.decision.policy import Approver, Policy
from agent.entrypoints.console.app import make_app
from agent.entrypoints.console.identity import IapPerson
from agent.errors import SettingsRejected
from agent.settings import Settings


def ask(browser, host, path="/", remote="127.0.0.1"):
    return browser.client.get(path, headers={"Host": host}, environ_overrides={"REMOTE_ADDR": remote})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8080", "localhost:1", "[::1]:8080"])
def test_this_machine_is_answered_under_its_own_names(browser, host):
    assert ask(browser, host).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8080", "0.0.0.0", "127.0.0.2", "127.0.0.1@evil.example",
     "evil.example#127.0.0.1", "", "[::ffff:127.0.0.1]", "127.0.0.1:x", "metadata.google.internal"],
)  # fmt: skip
def test_a_name_that_was_pointed_here_is_refused(browser, stage, host):
    """DNS rebinding: the browser thinks that it talks to the attacker's site."""
    incident = stage.waiting()
    for path in ("/", f"/incidents/{incident.id}", f"/plans/{incident.plan.id}", "/metrics"):
        response = ask(browser, host, path)
        assert response.status_code in {400, 403}
        assert incident.service not in response.get_data(as_text=True)


@pytest.mark.parametrize("remote", ["192.0.2.7", "10.0.0.1", "::2", "", "unix:"])
def test_another_machine_is_refused(browser, remote):
    assert ask(browser, "127.0.0.1", remote=remote).status_code == 403


def test_forwarding_headers_make_nobody_local(browser):
    response = browser.client.get(
        "/",
        headers={"Host": "127.0.0.1", "X-Forwarded-For": "127.0.0.1", "X-Real-Ip": "127.0.0.1"},
        environ_overrides={"REMOTE_ADDR": "192.0.2.7"},
    )
    assert response.status_code == 403


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Forwarded-For", "192.0.2.7"),
        ("X-Forwarded-Host", "console.tunnel.example"),
        ("X-Forwarded-Proto", "https"),
        ("X-Real-Ip", "192.0.2.7"),
        ("Forwarded", "for=192.0.2.7"),
        ("Via", "1.1 proxy"),
        ("Cf-Connecting-Ip", "192.0.2.7"),
        ("True-Client-Ip", "192.0.2.7"),
        ("X-Forwarded-For", ""),
    ],
)
def test_what_came_through_a_tunnel_is_not_from_this_machine(browser, stage, name, value):
    """A tunnel for Slack that rewrites the host name would open the console, and its button, to everybody."""
    incident = stage.waiting()
    through = {name: value}
    for path in ("/", f"/incidents/{incident.id}", "/metrics"):
        answer = browser.get(path, headers=through)
        assert answer.status_code == 403
        assert incident.service not in answer.get_data(as_text=True)
    form = browser.fields(f"/plans/{incident.plan.id}")["approve"]
    assert browser.post(f"/plans/{incident.plan.id}/decision", form, **through).status_code == 403
    assert stage.world.store.load(incident.id).decision is None


def test_every_answer_carries_the_headers(browser, stage):
    incident = stage.waiting()
    paths = ["/", f"/incidents/{incident.id}", f"/plans/{incident.plan.id}", "/nowhere", "/healthz", "/metrics"]
    answers = [browser.get(p) for p in paths]
    answers += [browser.post(f"/plans/{incident.plan.id}/decision", {}), ask(browser, "evil.example")]
    for answer in answers:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "same-origin"


def test_the_cookie_cannot_be_read_by_scripts_nor_sent_by_other_sites(browser, stage):
    incident = stage.waiting()
    cookie = browser.get(f"/incidents/{incident.id}").headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie


def test_a_cloud_store_without_the_proxy_does_not_start(stage):
    cloud = Settings(store="firestore:p", bus="pubsub:p", platform="cloud_run:p")
    with pytest.raises(SettingsRejected, match="IAP_AUDIENCE is unset"):
        make_app(stage.world, settings=cloud)


def test_behind_the_proxy_without_a_public_address_it_does_not_start(stage):
    cloud = Settings(store="firestore:p", bus="pubsub:p", platform="cloud_run:p", iap_audience="/projects/1/apps/2")
    with pytest.raises(SettingsRejected, match=r"PUBLIC_URL is 'http://127.0.0.1:8080'"):
        make_app(stage.world, settings=cloud)


class Proxied:
    """Somebody whom the proxy let in."""

    local = False

    def person(self, headers):
        return Person(who="ada@example.com", channel=Channel.CONSOLE, verified=True)


@pytest.mark.parametrize(
    ("origin", "status"),
    [("https://sre.example.com", 303), ("http://sre.example.com", 403), ("http://127.0.0.1:8080", 403), (None, 403)],
    ids=["our public address", "not encrypted", "the inner address", "none"],
)
def test_behind_the_proxy_answers_count_from_the_public_address_only(scenes, browser_of, origin, status):
    staged = scenes.a_stage(Policy(approvers=(Approver(name="A", email="ada@example.com", services=("gemma4-*",)),)))
    incident = staged.waiting()
    ada = browser_of(staged.world, settings=Settings(public_url="https://sre.example.com"), identity=Proxied())
    assert "; Secure;" in ada.get(f"/plans/{incident.plan.id}").headers["Set-Cookie"]
    ada.client.set_cookie("sre-console", "c" * 24, domain="127.0.0.1")
    assert ada.answer(incident.plan, "approve", Origin=origin).status_code == status
    decision = staged.world.store.load(incident.id).decision
    assert (decision is not None and decision.verified) == (status == 303)


def test_behind_the_proxy_nothing_is_shown_without_an_assertion(stage, browser_of):
    incident = stage.waiting()
    identity = IapPerson(audience="/projects/1/apps/2", keys=lambda _kid: None, clock=stage.clock)
    settings = Settings(
        store="firestore:p",
        bus="pubsub:p",
        platform="cloud_run:p",
        iap_audience="/projects/1/apps/2",
        public_url="https://sre.example.com",
        form_key="f" * 32,
    )
    stranger = browser_of(
        stage.world,
        settings=settings,
        identity=identity,
        headers={"X-Goog-Authenticated-User-Email": "accounts.google.com:ada@example.com"},
    )
    for path in ("/", f"/incidents/{incident.id}", f"/plans/{incident.plan.id}", "/metrics"):
        answer = stranger.get(path)
        assert answer.status_code == 403
        assert "You are not signed in" in answer.get_data(as_text=True)
        assert incident.service not in answer.get_data(as_text=True)
    assert stranger.post(f"/plans/{incident.plan.id}/decision", {"answer": "approve"}).status_code == 403
    assert stranger.get("/healthz").status_code == 200
