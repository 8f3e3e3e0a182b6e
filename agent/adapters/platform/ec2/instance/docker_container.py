"""Runs on the instance, in front of the script: reads a bare Docker container and makes it anew with other arguments.

The container before is stopped and kept under another name; an undo starts that one again.
"""

from __future__ import annotations

import json
import urllib.parse

from agent.adapters.platform.ec2.instance.docker_engine import (
    EFFECT,
    IMAGE,
    NEVER,
    OF,
    STOP_S,
    Container,
    container_rows,
    engine,
    found_container,
    inspect,
    message,
    tell,
)
from agent.adapters.platform.ec2.instance.effect_ledger import (
    KEPT_EFFECTS,
    Json,
    Refused,
    in_time,
    keep,
    kernel_rows,
    ledger,
    paged,
    require_expected,
)
from agent.adapters.platform.ec2.instance.local_server import exchange, gpus, healthy
from agent.adapters.platform.ec2.instance.unit_files import sha

BEFORE = "-before-"  # between the name of a container and the revision that took its place


def read_container(asked: Json) -> Json:
    """Return the container as it is now, and note in the ledger that its newest start serves."""
    with ledger(asked) as record:
        return described_container(asked, record)


def described_container(asked: Json, record: Json) -> Json:
    """Return the container as it is now; hold the ledger's lock."""
    newest = record["effects"][-1] if record["effects"] else None
    if newest is not None and not newest["restarted"] and inspect(asked, asked["container"]) is None:
        said = inspect(asked, newest["prior"])  # between two names
        seen = Container(said, asked) if said is not None else found_container(asked)
    else:
        seen = found_container(asked)
    ready, says = container_readiness(seen, newest, asked)
    if newest is not None and ready:
        newest["ready"] = True
    hidden = {"text", "policy", "back_policy"}
    return {
        "words": seen.words,
        "entrypoint": len(seen.entrypoint),
        "image": seen.image,
        "refs": [],
        "unread": seen.unread,
        "env": json.loads(seen.text)["env"],  # not strict: our own
        "text": seen.text,
        "others": seen.others,
        "generation": record["generation"],
        "effects": [{k: v for k, v in e.items() if k not in hidden} for e in record["effects"]],
        "enabled": "enabled"
        if seen.policy.get("Name") in {"always", "unless-stopped"}
        else "restart=" + (seen.policy.get("Name") or "no"),
        "ready": ready,
        "says": says,
        "gpus": gpus(),
    }


def container_readiness(seen: Container, newest: Json | None, asked: Json) -> tuple[bool | None, str]:
    """Return whether the newest start serves (None: nobody knows yet), and why it does not."""
    if newest is not None and newest.get("failed"):
        return False, newest["failed"]
    if newest is not None and not newest["restarted"]:
        return None, "it is being made anew"
    state, restarts = seen.said["State"], int(seen.said.get("RestartCount") or 0)
    runs = bool(state.get("Running")) and not state.get("Restarting")
    if runs and healthy(seen, asked):
        return True, ""
    if not runs or restarts:
        again = f", restarted {restarts} times" if restarts else ""
        killed = ", killed by the kernel for want of memory" if state.get("OOMKilled") else ""
        rows = container_rows({**asked, "lines": 1}, seen)
        last = f" (last line: {rows[-1][2][:300]})" if rows else ""
        error = f": {state['Error']}" if state.get("Error") else ""
        return False, f"the container ended with exit code {state.get('ExitCode', '?')}{killed}{again}{error}{last}"
    if newest is not None and newest["ready"]:
        return False, "its /health does not answer any more"
    return None, "the container runs, and its /health does not answer yet"


def change_container(asked: Json) -> Json:
    """Make the container anew, or start the one before again: once for each effect, inside its lease."""
    with ledger(asked) as record:
        newest = record["effects"][-1] if record["effects"] else None
        if any(e["key"] == asked["key"] for e in record["effects"]):
            if newest is not None and newest["key"] == asked["key"] and not newest["restarted"]:
                in_time(asked)
                swap(asked, record, newest)
            return described_container(asked, record)
        seen = found_container(asked)
        in_time(asked)
        now = {"others": seen.others, "text": sha(seen.text), "generation": record["generation"]}
        require_expected(asked, record, now, "the container changed since it was read")
        entry = {"key": asked["key"], "revision": asked["revision"], "incident": asked["incident"],
                 "generation": asked["generation"], "others": now["others"], "holds": sha(asked["text"]),
                 "before": now["text"], "text": asked["text"], "prior": seen.said["Id"], "former": record["generation"],
                 "policy": seen.policy, "new": "", "started": NEVER, "restarted": False, "ready": False,
                 "failed": ""}  # fmt: skip
        if asked["text"] == seen.text:  # the same once more: the container itself is started again
            entry |= {"new": seen.said["Id"], "started": seen.said["State"].get("StartedAt", NEVER)}
        else:
            entry |= kept_before(asked, record, seen.others)
        record["effects"] = [*record["effects"], entry][-KEPT_EFFECTS:]
        record["generation"] = asked["generation"]
        keep(asked, record)  # the intent first: a second try goes on, whatever becomes of this one
        swap(asked, record, entry)
        return described_container(asked, record)


def kept_before(asked: Json, record: Json, others: str) -> Json:
    """Return the container that had those arguments before, where it is still there and like the present one else."""
    text = sha(asked["text"])
    for entry in reversed(record["effects"]):
        if entry["before"] == text and entry["prior"] != entry["new"]:
            said = inspect(asked, entry["prior"])
            if said is not None and Container(said, asked).others == others:
                started = said["State"].get("StartedAt", NEVER)
                return {"new": said["Id"], "started": started, "back_policy": entry["policy"]}
    return {}


def swap(asked: Json, record: Json, entry: Json) -> None:
    """Make, stop, rename, start; each step fit to be taken up by a second try."""
    old = inspect(asked, entry["prior"])
    if not entry["new"]:
        try:
            entry["new"] = made(asked, entry)
        except Refused:
            record["effects"].remove(entry)  # nothing else was done yet
            record["generation"] = entry["former"]
            keep(asked, record)
            raise
        keep(asked, record)
    if entry["new"] != entry["prior"] and old is not None:
        step_aside(asked, entry, old)
    new = inspect(asked, entry["new"])
    if new is None:
        raise Refused("conflict", "the container that we made is gone")
    if new["Name"] != f"/{asked['container']}":
        tell(asked, "POST", f"/containers/{entry['new']}/rename?name={urllib.parse.quote(asked['container'])}")
    if entry.get("back_policy"):
        tell(asked, "POST", f"/containers/{entry['new']}/update", {"RestartPolicy": entry["back_policy"]})
    if new["State"].get("StartedAt", NEVER) == entry["started"]:
        verb = f"restart?t={STOP_S}" if entry["new"] == entry["prior"] else "start"
        try:
            tell(asked, "POST", f"/containers/{entry['new']}/{verb}")
        except Refused as error:
            entry["failed"] = f"it was not started: {error}"
    entry["restarted"] = True
    entry["others"] = found_container(asked).others
    keep(asked, record)


def step_aside(asked: Json, entry: Json, old: Json) -> None:
    """Stop a container and keep it under another name; it does not come back with the engine."""
    if old["State"].get("Running") or old["State"].get("Restarting"):
        tell(asked, "POST", f"/containers/{entry['prior']}/stop?t={STOP_S}")
    if old["HostConfig"].get("RestartPolicy", {}).get("Name") not in {"", "no", None}:
        tell(asked, "POST", f"/containers/{entry['prior']}/update", {"RestartPolicy": {"Name": "no"}})
    if old["Name"] == f"/{asked['container']}":
        aside = urllib.parse.quote(f"{asked['container']}{BEFORE}{entry['revision']}")
        tell(asked, "POST", f"/containers/{entry['prior']}/rename?name={aside}")


def made(asked: Json, entry: Json) -> str:
    """Create the new container, not started; the one that an earlier try created is found by name and label.

    Raises:
        Refused: The engine does not take it, or the name is somebody else's.
    """
    name = f"{asked['container']}-{entry['revision']}"
    there = inspect(asked, name)
    if there is not None:
        if (there["Config"].get("Labels") or {}).get(EFFECT) == entry["key"]:
            return str(there["Id"])
        raise Refused("conflict", f"a container {name!r} exists and is not of this effect")
    seen, wanted = found_container(asked), json.loads(entry["text"])  # not strict: our own
    own = dict(seen.env)
    lost = [n for n, v in wanted["env"] if v is None and n not in own]
    if lost:
        raise Refused("invalid", f"the value of {lost[0]} is not known on the instance any more")
    env = [row for row in seen.env if "=".join(row) in seen.of_image]
    env += [[n, own[n] if v is None else v] for n, v in wanted["env"]]
    body = seen.body(wanted["cmd"], env, {EFFECT: entry["key"], IMAGE: seen.image, OF: asked["container"]})
    status, said = engine(asked, "POST", f"/containers/create?name={urllib.parse.quote(name)}", body)
    if status >= 400:
        raise Refused("invalid", f"the Docker engine does not take it: {message(said)}")
    return str(json.loads(said)["Id"])  # not strict: the engine's own


def http_container(asked: Json) -> Json:
    """Ask the server of the container."""
    return exchange(
        found_container(asked), asked, (asked["method"], asked["path"], asked.get("body")), float(asked["timeout_s"])
    )


def log_of_container(asked: Json) -> Json:
    """Return lines of the container and of the kernel's own troubles, oldest first, as many from ``skip`` on as fit."""
    seen = found_container(asked)
    rows = container_rows(asked, seen)
    until = ("--until", f"@{asked['until']}") if asked.get("until") else ()
    found = sorted([*rows, *kernel_rows(rows, *until)], key=lambda row: row[0])
    return paged(found, asked, reached=len(rows) < int(asked["lines"]), ended=not seen.said["State"].get("Running"))
