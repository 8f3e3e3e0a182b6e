"""A console that holds no key hands an answer on: to `decide`, with the person's own signed assertion as the proof."""

from typing import Any, Final

from flask import request

from agent.app.http_clients import decide_client
from agent.core.decision.decision import Person
from agent.entrypoints.console.identity import ASSERTION
from agent.errors import PolicyRefused
from agent.settings import Settings
from agent.stages.incident_command import CommandRequest
from agent.stages.plan_to_decision import DecisionRequest
from agent.stages.request_change import ChangeAsked

TIMEOUT_S: Final = 15.0  # the person still waits before the page
_SIGNS: Final = "the key that signs decisions is held by `decide` alone"
_SIGNS_REQUESTS: Final = "the key that signs requests is held by `decide` alone"
_WRITES: Final = "the control database is written by `decide` alone"


class Forwarding:
    """What hands on what the person of the request at hand says; each is sent once.

    What the assertion says, not this process, is who speaks; `decide` checks it again, with the proxy's own keys. Every
    method raises what `decide` said against it, or NoResponse: nobody knows whether it was recorded, and to press again
    is safe.
    """

    def __init__(self, settings: Settings) -> None:
        url = settings.decide_url
        self._client = decide_client(url, timeout_s=TIMEOUT_S) if url is not None else None

    def decide(self, decision_request: DecisionRequest) -> object:
        """Hand an answer to a plan on."""
        said: dict[str, object] = {
            "plan": decision_request.plan,
            "answer": decision_request.answer.value,
            "why": decision_request.why,
        }
        said |= {name: True for name in ("withdraw", "break_glass") if getattr(decision_request, name)}
        hint = f"set it, or answer in Slack, or run: sre-agent {decision_request.answer} {decision_request.plan}"
        said["plan_digest"] = decision_request.plan_digest
        return self._post("/decisions", said, f"plan {decision_request.plan!r} was not decided", _SIGNS, hint)

    def ask(self, asked: ChangeAsked) -> str:
        """Hand a change request on; return its ID."""
        hint = f"set it, or run: sre-agent change {asked.service}"
        what = f"the change of {asked.service!r} was not recorded"
        answer = self._post("/requests", asked.body, what, _SIGNS_REQUESTS, hint)
        return str(answer.get("request", "")) if isinstance(answer, dict) else ""

    def withdraw(self, asked: str, _person: Person, why: str) -> object:
        """Hand on that a request is taken back."""
        said = {"request": asked, "why": why or "no reason given"}
        hint = "set it, or run: sre-agent change SERVICE --withdraw --why TEXT"
        return self._post("/requests/withdraw", said, f"request {asked!r} was not taken back", _SIGNS_REQUESTS, hint)

    def carry_out(self, asked: CommandRequest) -> object:
        """Hand on what the person does about an incident."""
        hint = "set it, or use the command line: sre-agent incidents --help"
        return self._post("/commands", asked.body, f"nothing was done about {asked.incident!r}", _WRITES, hint)

    def _post(self, path: str, said: dict[str, Any], what: str, why: str, hint: str) -> Any:
        if self._client is None:
            raise PolicyRefused(what, why=f"DECIDE_URL is unset, and {why}", hint=hint)
        return self._client.post(path, said | {"assertion": request.headers.get(ASSERTION, "")})
