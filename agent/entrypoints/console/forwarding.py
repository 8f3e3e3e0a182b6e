"""A console that holds no key hands an answer on: to `decide`, with the person's own signed assertion as the proof."""

from collections.abc import Callable
from typing import Final

from flask import request

from agent.app.http_clients import decide_client
from agent.entrypoints.console.identity import ASSERTION, Person
from agent.errors import PolicyRefused
from agent.ports.decide import Decide
from agent.settings import Settings
from agent.stages.incident_command import CommandRequest
from agent.stages.plan_to_decision import DecisionRequest
from agent.stages.request_change import ChangeAsked

TIMEOUT_S: Final = 15.0  # the person still waits before the page


def forward_of(settings: Settings) -> Callable[[DecisionRequest], object]:
    """Return what hands the answer of the request at hand on.

    What the assertion says, not this process, is who decides; `decide` checks it again, with the proxy's own keys.
    """
    client = _client(settings)

    def forward(word: DecisionRequest) -> object:
        """Send it once.

        Raises:
            SreError: What `decide` said against it.
            NoResponse: It did not answer; nobody knows whether it was taken.
        """
        if client is None:
            raise PolicyRefused(
                f"plan {word.plan!r} was not decided",
                why="DECIDE_URL is unset, and the key that signs decisions is held by `decide` alone",
                hint=f"set it, or answer in Slack, or run: sre-agent {word.answer} {word.plan}",
            )
        said: dict[str, object] = {
            "plan": word.plan,
            "answer": word.answer.value,
            "why": word.why,
            "plan_digest": word.plan_digest,
        }
        said |= {name: True for name in ("withdraw", "break_glass") if getattr(word, name)}
        return client.post("/decisions", said | {"assertion": request.headers.get(ASSERTION, "")})

    return forward


def forward_request_of(settings: Settings) -> Callable[[ChangeAsked], str]:
    """Return what hands the change request of the page at hand on; `decide` reads from the assertion who asks."""
    client = _client(settings)

    def forward(asked: ChangeAsked) -> str:
        """Send it once; return the ID of the request.

        Raises:
            SreError: What `decide` said against it.
            NoResponse: It did not answer; nobody knows whether it was recorded. To ask the same again is safe.
        """
        if client is None:
            raise PolicyRefused(
                f"the change of {asked.service!r} was not recorded",
                why="DECIDE_URL is unset, and the key that signs requests is held by `decide` alone",
                hint=f"set it, or run: sre-agent change {asked.service}",
            )
        body = {
            "service": asked.service,
            "actions": [action.model_dump(mode="json") for action in asked.actions],
            "why": asked.why,
            "supersede": asked.supersede,
            "target": asked.target.model_dump(mode="json") if asked.target is not None else None,
            "assertion": request.headers.get(ASSERTION, ""),
        }
        answer = client.post("/requests", body)
        return str(answer.get("request", "")) if isinstance(answer, dict) else ""

    return forward


def forward_withdrawal_of(settings: Settings) -> Callable[[str, Person, str], object]:
    """Return what hands a request that is taken back on; `decide` reads from the assertion whose word that is."""
    client = _client(settings)

    def forward(asked: str, _person: Person, why: str) -> object:
        """Send it once.

        Raises:
            SreError: What `decide` said against it.
            NoResponse: It did not answer; nobody knows whether it was recorded. To press again is safe.
        """
        if client is None:
            raise PolicyRefused(
                f"request {asked!r} was not taken back",
                why="DECIDE_URL is unset, and the key that signs requests is held by `decide` alone",
                hint="set it, or run: sre-agent change SERVICE --withdraw --why TEXT",
            )
        said = {"request": asked, "why": why or "no reason given", "assertion": request.headers.get(ASSERTION, "")}
        return client.post("/requests/withdraw", said)

    return forward


def forward_command_of(settings: Settings) -> Callable[[CommandRequest], object]:
    """Return what hands on what a person does about an incident; `decide` reads from the assertion who that is."""
    client = _client(settings)

    def forward(asked: CommandRequest) -> object:
        """Send it once.

        Raises:
            SreError: What `decide` said against it.
            NoResponse: It did not answer; nobody knows whether it was recorded. To press again is safe.
        """
        if client is None:
            raise PolicyRefused(
                f"nothing was done about {asked.incident!r}",
                why="DECIDE_URL is unset, and the control database is written by `decide` alone",
                hint="set it, or use the command line: sre-agent incidents --help",
            )
        said = {"incident": asked.incident, "command": asked.command.value, "text": asked.text}
        more = {"plan_digest": asked.plan_digest, "assertion": request.headers.get(ASSERTION, "")}
        return client.post("/commands", said | more)

    return forward


def _client(settings: Settings) -> Decide | None:
    """Return what reaches `decide`, or nothing where nobody said where it is."""
    return decide_client(settings.decide_url, timeout_s=TIMEOUT_S) if settings.decide_url is not None else None
