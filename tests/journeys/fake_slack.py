"""A Slack on loopback: its Web API, its limits, its buttons, its clock of three seconds."""

import hashlib
import hmac
import json
import threading
import time
import urllib.error
import urllib.request
from urllib.parse import quote_plus

from tests.loopback import Loopback

TOKEN = "xoxb-fake"
LIMITS = {"header": 150, "section": 3000, "button": 75, "value": 2000, "context": 2000, "text": 40_000}


def units(text):
    return len(text.encode("utf-16-le")) // 2


def problems(arguments):
    """What Slack's documentation would find wrong with a message."""
    found = []
    if not arguments.get("text") or units(arguments["text"]) > LIMITS["text"]:
        found.append("no_text")
    blocks = arguments.get("blocks", [])
    if len(blocks) > 50:
        found.append("too many blocks")
    for block in blocks:
        kind = block["type"]
        if kind == "header":
            text = block["text"]
            found += [] if text["type"] == "plain_text" and 0 < units(text["text"]) <= 150 else ["header"]
        elif kind == "section":
            found += [] if 0 < units(block["text"]["text"]) <= 3000 else ["section"]
            found += [] if block["text"].get("verbatim") is True else ["not verbatim"]
        elif kind == "context":
            found += [] if 0 < len(block["elements"]) <= 10 else ["context"]
            found += ["context text" for e in block["elements"] if not 0 < units(e["text"]) <= 2000]
        elif kind == "actions":
            found += [] if 0 < len(block["elements"]) <= 25 and len(block["block_id"]) <= 255 else ["actions"]
            for button in block["elements"]:
                found += [] if 0 < units(button["text"]["text"]) <= 75 else ["button text"]
                found += [] if len(button["action_id"]) <= 255 else ["action_id"]
                found += [] if units(button.get("value", "")) <= 2000 else ["value"]
                found += [] if len(button.get("url", "")) <= 3000 else ["url"]
                confirm = button.get("confirm")
                if confirm:
                    sizes = {"title": 100, "text": 300, "confirm": 30, "deny": 30}
                    found += [n for n, most in sizes.items() if not 0 < units(confirm[n]["text"]) <= most]
        elif kind == "input":
            found += input_problems(block)
        else:
            found.append(f"unknown block {kind}")
    named = [block["block_id"] for block in blocks if "block_id" in block]
    found += [] if len(named) == len(set(named)) else ["block_id twice"]
    if arguments.get("link_names") or arguments.get("parse", "none") != "none":
        found.append("links are made")
    return found


def input_problems(block):
    """What https://docs.slack.dev/reference/block-kit (input block, plain-text input; 2026-11-21) would find wrong."""
    found = [] if len(block["block_id"]) <= 255 and len(block["element"]["action_id"]) <= 255 else ["input ids"]
    label, element = block["label"], block["element"]
    found += [] if label["type"] == "plain_text" and 0 < units(label["text"]) <= 2000 else ["label"]
    found += [] if element["type"] == "plain_text_input" else [f"unknown element {element['type']}"]
    found += [] if 1 <= element.get("max_length", 3000) <= 3000 else ["max_length"]
    hint = element.get("placeholder")
    found += (
        [] if hint is None or (hint["type"] == "plain_text" and 0 < units(hint["text"]) <= 150) else ["placeholder"]
    )
    return found


def state_of(message, typed):
    """The ``state`` of a press: every stateful element of the message by block and action, null where nothing is."""
    inputs = [block for block in message["blocks"] if block["type"] == "input"]
    values = {
        b["block_id"]: {b["element"]["action_id"]: {"type": "plain_text_input", "value": typed or None}} for b in inputs
    }
    return {"values": values}


class FakeSlack:
    """Messages by (channel, ts), with everything they ever said.

    Attributes:
        messages: Those that stand in a channel itself.
        replies: The texts of those in a thread.
        limited: How many further calls are answered with 429.
        refuse: An error every call is answered with.
    """

    def __init__(self, secret):
        self.secret, self.messages, self.history, self.errors = secret, {}, [], []
        self.replies = []  # what stands in threads
        self.limited, self.retry_after, self.refuse, self.broken = 0, 1, None, 0
        self._lock = threading.Lock()
        self.server = Loopback(self._reply, methods=["POST"])
        self.url = f"{self.server.url}/api/"

    def close(self):
        self.server.close()

    def _reply(self, request):
        status, headers, answer = self._answer(request.path.rsplit("/", 1)[-1], request.headers, request.body)
        return status, answer if answer is not None else b"<html>", headers

    def _answer(self, method, headers, body):
        with self._lock:
            if self.broken:
                self.broken -= 1
                return 502, {}, None
            if self.limited:
                self.limited -= 1
                return 429, {"Retry-After": str(self.retry_after)}, {"ok": False, "error": "ratelimited"}
            if headers.get("Authorization") != f"Bearer {TOKEN}":
                return 200, {}, {"ok": False, "error": "invalid_auth"}
            if self.refuse:
                return 200, {}, {"ok": False, "error": self.refuse}
            if not headers.get("Content-Type", "").startswith("application/json"):
                return 200, {}, {"ok": False, "error": "invalid_form_data"}
            arguments = json.loads(body)
            wrong = problems(arguments)
            if wrong:
                self.errors.append((method, wrong))
                return 200, {}, {"ok": False, "error": "invalid_blocks", "errors": wrong}
            return 200, {}, self._do(method, arguments)

    def _do(self, method, arguments):
        self.history.append((method, arguments))
        if method == "chat.postMessage" and "thread_ts" in arguments:
            if (arguments["channel"], arguments["thread_ts"]) not in self.messages:
                return {"ok": False, "error": "thread_not_found"}
            self.replies.append(arguments["text"])
            return {"ok": True, "channel": arguments["channel"], "ts": f"1795169760.{len(self.replies):06d}"}
        if method == "chat.postMessage":
            ts = f"1795169750.{len(self.messages):06d}"
            self.messages[arguments["channel"], ts] = arguments
            return {"ok": True, "channel": arguments["channel"], "ts": ts, "message": {}}
        if method == "chat.update":
            place = (arguments["channel"], arguments["ts"])
            if place not in self.messages:
                return {"ok": False, "error": "message_not_found"}
            self.messages[place] = arguments
            return {"ok": True, "channel": place[0], "ts": place[1], "text": arguments["text"]}
        return {"ok": False, "error": "unknown_method"}

    def buttons(self):
        """The buttons of the newest message, by action."""
        if not self.messages:
            return {}
        blocks = list(self.messages.values())[-1]["blocks"]
        return {e["action_id"]: e for b in blocks if b["type"] == "actions" for e in b["elements"]}

    def press(self, url, action, *, user, now, times=1, typed=""):
        """Press a button of the newest message as a person does; what Slack gets back, and how long it took.

        Whatever the person typed before goes with every press, as Slack sends it.
        """
        (channel, ts), message = list(self.messages.items())[-1]
        button = self.buttons()[action]
        answers = []
        for n in range(times):
            payload = {
                "type": "block_actions",
                "user": {"id": user, "username": "someone", "team_id": "T0"},
                "api_app_id": "A0",
                "token": "deprecated",
                "container": {"type": "message", "message_ts": ts, "channel_id": channel},
                "trigger_id": "1.2.3",
                "team": {"id": "T0"},
                "channel": {"id": channel},
                "message": message,
                "state": state_of(message, typed),
                "response_url": "https://hooks.slack.com/actions/T0/1/a",
                "actions": [{**button, "block_id": "b", "action_ts": f"{now.timestamp() + n:.6f}"}],
            }
            body = f"payload={quote_plus(json.dumps(payload))}".encode()
            stamp = str(int(now.timestamp()))
            mac = hmac.new(self.secret, b"v0:%b:%b" % (stamp.encode(), body), hashlib.sha256).hexdigest()
            request = urllib.request.Request(
                url,
                body,
                {
                    "Content-Type": "application/x-www-form-urlencoded",
                    "X-Slack-Request-Timestamp": stamp,
                    "X-Slack-Signature": f"v0={mac}",
                    "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
                },
            )
            began = time.monotonic()
            try:
                with urllib.request.urlopen(request, timeout=3) as answer:  # Slack waits three seconds
                    answers.append((answer.status, answer.read(), time.monotonic() - began))
            except urllib.error.HTTPError as error:
                answers.append((error.code, error.read(), time.monotonic() - began))
                error.close()
        return answers
