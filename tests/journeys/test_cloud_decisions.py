"""From a recorded event to RESOLVED as in the cloud: the console hands the answer on, `decide` signs, the executor acts."""

import re
import shlex
import sys
import threading
from dataclasses import replace

import pytest
import requests
import structlog
from werkzeug.serving import make_server

from agent.adapters.google.key_set import KeySet
from agent.core.decision.decision import Channel
from agent.core.decision.policy import Approver
from agent.core.incident.phase import Phase
from agent.entrypoints.cli.main import main
from agent.entrypoints.console.app import make_app
from agent.entrypoints.console.forwarding import forward_of
from agent.entrypoints.console.identity import ASSERTION, IapPerson
from agent.entrypoints.http.application import make_http_app
from agent.entrypoints.http.authenticator import Authenticator
from agent.entrypoints.http.decide import decisions
from agent.entrypoints.http.decide_service import DecideService
from agent.entrypoints.http.operators import operators
from agent.entrypoints.service import handlers
from agent.ports.stage_context import Owner
from agent.settings import Settings
from tests import google_tokens

PROBE = "gemma4-26b-l4-startup-probe"
ORIGIN = "https://sre.example.com"
ADA = Approver(name="Ada", email="ada@example.com", services=("gemma4-*",))


class Cloud:
    """One service whose console and deciding function are web servers of their own, with worlds of their own."""

    def __init__(self, told):
        self.told, self.keys, self.servers = told, google_tokens.KeyServer(), []
        for owner, world in list(told.installation.contexts.items()):
            known = replace(world.rules, policy=world.rules.policy.with_(approvers=(ADA,)))
            told.installation.contexts[owner] = replace(world, rules=known, local=False)
        told.work = told.installation.worker(handlers(told.installation), threads=1).run_due
        self.decide_url = self.serve(self.decide())
        self.console_url = self.serve(self.console())

    def serve(self, app):
        server = make_server("127.0.0.1", 0, app, threaded=True)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        self.servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    def decide(self):
        clock = self.told.clock
        authenticator = Authenticator(
            clock=clock,
            google=KeySet(clock, url=f"{self.keys.url}/certs", holder="Google's accounts"),
            iap=KeySet(clock, url=f"{self.keys.url}/iap", holder="Identity-Aware Proxy"),
            audiences=(google_tokens.OURS,),
            own=google_tokens.OURS,
            iap_audience=google_tokens.IAP,
        )
        gate = DecideService(
            world=self.told.installation.contexts[Owner.DECIDE], clock=clock, authenticator=authenticator
        )
        return make_http_app(decisions(gate), operators(gate))

    def console(self):
        settings = Settings(
            store="firestore:p", bus="pubsub:p", platform="cloud_run:p", iap_audience=google_tokens.IAP, public_url=ORIGIN,
            decide_url=self.decide_url, form_key="f" * 32,
        )  # fmt: skip
        world = self.told.installation.contexts[Owner.INTAKE]
        assert world.receipt_key is None
        assert world.control is None
        keys = KeySet(self.told.clock, url=f"{self.keys.url}/iap", holder="Identity-Aware Proxy")
        identity = IapPerson(audience=google_tokens.IAP, keys=keys, clock=self.told.clock)
        return make_app(world, settings=settings, identity=identity, decide=forward_of(settings))

    def press(self, plan, answer):
        """Open the plan's page and press, as a browser behind the proxy does."""
        sent = {ASSERTION: google_tokens.assertion(self.told.clock.now()), "Origin": ORIGIN}
        page = requests.get(f"{self.console_url}/plans/{plan.id}", headers=sent, timeout=10)
        sent["Cookie"] = page.headers["Set-Cookie"].partition(";")[0]
        forms = re.findall(r"<form method=\"post\".*?</form>", page.text, re.DOTALL)
        fields = next(f for f in (dict(re.findall(r'name="(\w+)" value="([^"]*)"', form)) for form in forms)
                      if f["answer"] == answer)  # fmt: skip
        place = f"{self.console_url}/plans/{plan.id}/decision"
        return requests.post(place, data=fields, headers=sent, timeout=10, allow_redirects=False).status_code

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()
        self.keys.close()


@pytest.fixture
def cloud(journey):
    made = Cloud(journey(PROBE))
    yield made
    made.close()
    structlog.reset_defaults()


def test_an_answer_in_the_console_ends_in_a_service_that_serves(cloud):
    plan = cloud.told.until(lambda i: i.phase is Phase.ASKED, limit_s=300).plan
    assert cloud.press(plan, "approve") == 303
    decision = cloud.told.incidents()[0].decision
    assert (decision.who, decision.name, decision.channel) == ("ada@example.com", "Ada", Channel.CONSOLE)
    assert cloud.told.until(lambda i: i.ended, limit_s=900).phase is Phase.RESOLVED


def test_an_answer_from_the_command_line_does_too(cloud, tmp_path, monkeypatch, capsys):
    """The executor takes the receipt: who is proven by an ID token is an approver like any other."""
    plan = cloud.told.until(lambda i: i.phase is Phase.ASKED, limit_s=300).plan
    token = google_tokens.id_token(google_tokens.id_claims(cloud.told.clock.now()))
    monkeypatch.setenv("DECIDE_URL", cloud.decide_url)
    monkeypatch.setenv("ID_TOKEN_COMMAND", shlex.join([sys.executable, "-c", f"print({token!r})"]))
    assert main(["approve", plan.id]) == 0
    assert "approved by ada@example.com" in capsys.readouterr().out
    assert cloud.told.until(lambda i: i.ended, limit_s=900).phase is Phase.RESOLVED


def test_a_word_that_nothing_proves_changes_nothing_there(cloud):
    """The same installation, the operator's unproven word: an approval that counts on one machine alone is none here."""
    from agent.errors import PolicyRefused

    plan = cloud.told.until(lambda i: i.phase is Phase.ASKED, limit_s=300).plan
    with pytest.raises(PolicyRefused, match="an unproven word counts on one machine's own service only"):
        cloud.told.answer(plan.id)
