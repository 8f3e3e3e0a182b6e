"""What a proof costs: nothing of it is loaded before somebody brings one."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
PROGRAM = """
import hashlib, hmac, json, sys, time
from functions_framework import create_app
client = create_app("decide", sys.argv[1], "http").test_client()
watched = ("cryptography", "requests", "httpcore2", "agent.entrypoints.http.operators", "agent.entrypoints.http.id_token")
body, stamp = b"payload=%7B%7D", str(int(time.time()))
mac = hmac.new(b"s" * 32, b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
headers = {"Content-Type": "application/x-www-form-urlencoded", "X-Slack-Request-Timestamp": stamp}
press = client.post("/slack/actions", data=body, headers=headers | {"X-Slack-Signature": "v0=" + mac})
after_press = [name for name in watched if name in sys.modules]
word = client.get("/kill-switch", headers={"X-Sre-Id-Token": "a.b.c"})
after_word = [name for name in watched if name in sys.modules]
print(json.dumps([press.status_code, after_press, word.status_code, after_word]))
"""


def test_a_press_in_slack_loads_nothing_that_reads_tokens(tmp_path):
    """The start of the one function that people wait for: cryptography comes with the first token, not before."""
    environ = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    environ |= {"PYTHONPATH": str(ROOT), "STORE": f"sqlite:{tmp_path / 'state'}", "SLACK_SIGNING_SECRET": "s" * 32}
    environ |= {"ID_TOKEN_AUDIENCES": "https://decide.example", "IAP_AUDIENCE": "/projects/1/apps/2"}
    command = [sys.executable, "-c", PROGRAM, str(ROOT / "functions" / "decide.py")]
    ran = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    press, before, word, after = json.loads(ran.stdout.splitlines()[-1])
    assert (press, before, word) == (400, [], 401)
    assert {"cryptography", "agent.entrypoints.http.id_token"} <= set(after)
