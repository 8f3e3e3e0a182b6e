"""A plan that waits for an answer, and the deciding function that hears it: called, or behind a real web server."""

import json
import threading
from dataclasses import replace
from datetime import timedelta

from werkzeug.serving import make_server
from werkzeug.wrappers import Request

from agent.adapters.google.key_set import KeySet
from agent.core.decision.policy import Approver, Policy
from agent.core.service.services import parse_services
from agent.entrypoints.http.authenticator import TOKEN_HEADER, Authenticator
from agent.entrypoints.http.decide_service import DecideService
from tests.http_door import asked, web_of

JSON = {"Content-Type": "application/json"}


class Desk:
    """A plan that waits for an answer, and the deciding function that hears it."""

    def __init__(self, theatre, tokens, *, services=("gemma4-*",), **plan):
        self.tokens, self.theatre = tokens, theatre
        approvers = (
            Approver(name="Ada", email="Ada@Example.com", slack="U0ADA", services=services),
            Approver(name="Ben", email="ben@example.com", services=("other-*",)),
        )
        self.stage = theatre.a_stage(Policy(approvers=approvers))
        self.stage.clock.at = tokens.NOW - timedelta(seconds=30)
        self.stage.world = replace(self.stage.world, local=False)
        self.incident = self.stage.waiting(plan=plan)
        self.plan = self.incident.plan

    def now(self):
        return self.stage.clock.at

    def gate(self, **changes):
        authenticator = Authenticator(
            clock=self.stage.clock,
            google={"g1": self.tokens.rsa_jwk()}.get,
            iap={"i1": self.tokens.ec_jwk()}.get,
            audiences=(self.tokens.OURS, self.tokens.GCLOUD),
            own=self.tokens.OURS,
            iap_audience=self.tokens.IAP,
        )
        return DecideService(
            **({"context": self.stage.world, "clock": self.stage.clock, "authenticator": authenticator} | changes)
        )

    def token(self, **claims):
        return self.tokens.id_token(self.tokens.id_claims(self.now(), **claims))

    def ask(self, method, path, body=None, *, token=None, headers=None, gate=None, query="", jti="1"):
        """Send a request with a token of Ada's, of its own unless one is given."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = JSON | ({TOKEN_HEADER: self.token(jti=jti) if token is None else token} if token != "" else {})
        sent |= headers or {}
        status, _, said = asked(method, path, sent, raw, gate=gate or self.gate(), query=query)
        return status, json.loads(said) if said else None

    def say(self, answer="approve", *, body=None, **more):
        return self.ask("POST", "/decisions", {"plan": self.plan.id, "answer": answer} | (body or {}), **more)

    def watch(self, service):
        """Watch one more service, whose context Ada may change."""
        rules = self.stage.world.rules
        row = {"name": service, "platform": "host", "model": "m", "accelerator": "cpu", "owner": "console"}
        policy = rules.policy.with_(flags={"max-model-len": "whole 256..131072"})
        rules = replace(rules, services=parse_services({"service": [row]}), policy=policy)
        self.stage.world = replace(self.stage.world, rules=rules)

    def phase(self):
        return self.stage.world.store.load(self.incident.id).phase

    def decisions(self):
        return [row for row in self.stage.world.control.audit() if row.kind.startswith("decision.")]


class Served:
    """The same deciding function behind a web server on loopback, with keys that it fetches itself."""

    def __init__(self, desk, key_server, **changes):
        gate = desk.gate(**changes)
        google = KeySet(desk.stage.clock, url=f"{key_server.url}/certs", holder="Google's accounts")
        iap = KeySet(desk.stage.clock, url=f"{key_server.url}/iap", holder="Identity-Aware Proxy")
        self.asked = []
        self.gate = replace(gate, authenticator=replace(gate.authenticator, google=google, iap=iap))
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def _answer(self, environ, start):
        request = Request(environ)
        self.asked.append((request.method, request.path))
        return web_of(self.gate)(environ, start)

    def close(self):
        self._server.shutdown()
        self._server.server_close()
