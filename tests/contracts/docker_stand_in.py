"""A docker for tests: `run`, `inspect`, `stop` and `rm` of one container, which is a real process of this machine.

What an image would run is DOCKER_RUNS, a JSON list of words in front of the container's own; the state is a folder DOCKER_STATE.
Words, variables and exit codes are as docker's own command line gives them; isolation is not.
"""

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

TAKES_WORD = {
    "--name", "--label", "--network", "--shm-size", "--restart", "--env", "--volume", "--memory", "--entrypoint", "--time", "--type",
}  # fmt: skip
SHELL = ("/bin/sh", "-c", 'code=$1; shift; "$@"; echo $? > "$code"', "sh")


class Docker:
    """One call of docker."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ, self.state = environ, Path(environ["DOCKER_STATE"])
        self.out = self.err = ""

    def call(self, *words: str) -> int:
        """Do what the words ask for and return the exit code."""
        with (self.state / "calls").open("a") as file:
            file.write(json.dumps(words) + "\n")
        options, rest = [], list(words[1:])
        while rest and rest[0].startswith("-"):
            name = rest.pop(0)
            options.append((name, rest.pop(0) if name in TAKES_WORD else ""))
        return {"run": self.run, "inspect": self.inspect, "stop": self.stop, "rm": self.rm}[words[0]](options, rest)

    def run(self, options: list[tuple[str, str]], words: list[str]) -> int:
        name = dict(options)["--name"]
        record = self.state / f"{name}.json"
        if record.exists():
            self.err = f'docker: Error response from daemon: Conflict. The container name "/{name}" is already in use.'
            return 125
        if "missing" in words[0]:
            self.err = f"docker: Error response from daemon: manifest for {words[0]} not found: manifest unknown."
            return 125
        environ = {"PATH": self.environ["PATH"]} | {k: v for k, v in self.environ.items() if k.startswith("FAKE_")}
        for one in [value for option, value in options if option == "--env"]:
            key, equals, value = one.partition("=")
            environ[key] = value if equals else self.environ[key]
        code = record.with_suffix(".code")
        code.unlink(missing_ok=True)
        program = [*SHELL, str(code), *json.loads(self.environ["DOCKER_RUNS"]), *words[1:]]
        log = (str(record.with_suffix(".log")), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        actions = [(os.POSIX_SPAWN_OPEN, fd, *log) for fd in (1, 2)]
        pid = os.posix_spawn(program[0], program, environ, file_actions=actions, setsid=True)
        labels = dict(value.split("=", 1) for option, value in options if option == "--label")
        began = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        kept = {"pid": pid, "labels": labels, "began": began, "image": words[0], "environ": environ}
        record.write_text(json.dumps(kept))
        self.out = "c0ffee"
        return 0

    def inspect(self, _: list[tuple[str, str]], words: list[str]) -> int:
        record = self.state / f"{words[0]}.json"
        if not record.exists():
            self.err = f"Error response from daemon: No such container: {words[0]}"
            return 1
        kept = json.loads(record.read_text())
        code = record.with_suffix(".code")
        ended = code.exists() and code.read_text().strip()
        state = {"Running": not ended, "ExitCode": int(ended or 0), "OOMKilled": False, "StartedAt": kept["began"]}
        self.out = json.dumps([{"State": state, "Config": {"Labels": kept["labels"], "Image": kept["image"]}}])
        return 0

    def stop(self, _: list[tuple[str, str]], words: list[str]) -> int:
        record = self.state / f"{words[0]}.json"
        if record.exists():
            group = json.loads(record.read_text())["pid"]
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(group, 0)
            while _lives(group):
                time.sleep(0.002)
            code = record.with_suffix(".code")
            if not code.exists() or not code.read_text():
                code.write_text("137")
        return 0

    def rm(self, options: list[tuple[str, str]], words: list[str]) -> int:
        self.stop(options, words)
        (self.state / f"{words[0]}.json").unlink(missing_ok=True)
        return 0


def _lives(group: int) -> bool:
    """Whether a process of a group runs; one that ended and was not reaped yet holds nothing any more."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, member = stat.read_text().rpartition(")")[2].split()[:3]
            if int(member) == group and state != "Z":
                return True
    return False


def main() -> int:
    docker = Docker(os.environ)
    code = docker.call(*sys.argv[1:])
    sys.stdout.write(docker.out + "\n")
    sys.stderr.write(docker.err + "\n")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
