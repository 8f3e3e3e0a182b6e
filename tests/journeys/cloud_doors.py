"""A console and a deciding function as web servers of their own, as in the cloud, over one installation on a stepped clock."""

import re
import threading
from dataclasses import replace

import requests
from werkzeug.serving import make_server

from agent.adapters.google.key_set import KeySet
from agent.core.decision.policy import Approver
from agent.entrypoints.console.app import make_app
from agent.entrypoints.console.forwarding import Forwarding
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

ORIGIN = "https://sre.example.com"
ADA = Approver(name="Ada", email="ada@example.com", services=("gemma4-*",))
BEN = Approver(name="Ben", email="ben@example.com", services=("gemma4-*",))


class Cloud:
    """One service whose console and deciding function are web servers of their own, with worlds of their own."""

    def __init__(self, told):
        self.told, self.keys, self.servers = told, google_tokens.KeyServer(), []
        for owner, world in list(told.installation.contexts.items()):
            known = replace(world.rules, policy=world.rules.policy.with_(approvers=(ADA, BEN)))
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
            context=self.told.installation.contexts[Owner.DECIDE], clock=clock, authenticator=authenticator
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
        to = Forwarding(settings)
        return make_app(world, settings=settings, identity=identity, decide=to.decide, ask=to.ask, withdraw=to.withdraw)

    def press(self, plan, answer, *, who=ADA.email):
        """Open the plan's page and press, as a browser behind the proxy does."""
        forms, sent = self.forms(f"/plans/{plan.id}", who)
        fields = next(f for f in forms if f.get("answer") == answer)
        return self.send(f"/plans/{plan.id}/decision", fields, sent).status_code

    def forms(self, path, who=ADA.email):
        """The hidden fields of each form of a page, and the headers with which the browser sends one back."""
        sent = {ASSERTION: google_tokens.assertion(self.told.clock.now(), email=who), "Origin": ORIGIN}
        page = requests.get(f"{self.console_url}{path}", headers=sent, timeout=10)
        sent["Cookie"] = page.headers["Set-Cookie"].partition(";")[0]
        forms = re.findall(r"<form method=\"post\".*?</form>", page.text, re.DOTALL)
        return [dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form)) for form in forms], sent

    def send(self, path, fields, sent):
        """Send a form; where it leads is not followed."""
        place = f"{self.console_url}{path}"
        return requests.post(place, data=fields, headers=sent, timeout=10, allow_redirects=False)

    def ask(self, service, *, who=ADA.email, **typed):
        """Fill in the form of a service's page and send it."""
        forms, sent = self.forms(f"/services/{service}", who)
        fields = next(f for f in forms if f.get("form") == typed.get("form", "change"))
        return self.send(f"/services/{service}/requests", fields | {"do": "ask"} | typed, sent)

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()
        self.keys.close()
