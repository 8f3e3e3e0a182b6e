"""An instance on loopback behind the platform contract: EC2 by moto, Systems Manager by a server that runs the script."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agent.adapters.aws.client import Aws
from agent.adapters.clock import SystemClock
from agent.adapters.platform.ec2.command import InstanceCommands
from agent.adapters.platform.ec2.describe import Seen
from agent.adapters.platform.ec2.measure import Meter
from agent.adapters.platform.ec2.platform import Ec2Platform
from agent.adapters.platform.ec2.target import UnitTarget
from agent.core.service.serving import ServingConfig
from tests.contracts.docker_engine import IMAGE_ENV, DockerEngine
from tests.contracts.host_world import FAKE
from tests.contracts.ssm_server import SsmServer
from tests.free_port import free_port

REGION, TYPE, UNIT, CONTAINER = "us-east-1", "g6.xlarge", "vllm.service", "vllm"
LIMIT_S = 20.0
SYSTEMD = FAKE.with_name("fake_systemd.py")
KEYS = {"aws_access_key_id": "t", "aws_secret_access_key": "t"}


@cache
def ec2_url() -> str:
    """Return where moto answers as EC2; one server for all tests of a process."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    return f"http://{host}:{port}"


@cache
def ssm_server() -> SsmServer:
    """Return what answers as Systems Manager; one for all tests of a process."""
    return SsmServer()


class Session:
    """A session of the SDK whose clients speak to loopback; every operation they send is in ``called``.

    Clients are kept: to make one of EC2 takes longer than most tests.
    """

    def __init__(self) -> None:
        import boto3

        self._session = boto3.Session(**KEYS)
        self._made: dict[str, Any] = {}
        self.called: list[str] = []

    def client(self, service: str, *, region_name: str = REGION, config: Any = None) -> Any:
        key = f"{service} {region_name} {config.retries if config else ''} {config.read_timeout if config else ''}"
        if key not in self._made:
            url = ssm_server().url if service == "ssm" else ec2_url()
            made = self._session.client(service, endpoint_url=url, region_name=region_name, config=config)
            made.meta.events.register("before-call", lambda model, **_: self.called.append(f"{service}:{model.name}"))
            self._made[key] = made
        return self._made[key]


@cache
def sdk() -> Session:
    """Return the session of all tests of a process."""
    return Session()


class Ec2World:
    """One instance with one unit, and the adapter over it.

    Args:
        folder: For the unit's files, the ledger and what stands in for systemd.
        service: Its name.
        config: What to run; the program is the fake one, the port a free one.
        unit: The unit's text, with ``{exec}`` for its words; a plain one when None.
        env: More of the environment of what the instance runs.
        gpu: What nvidia-smi prints there; empty where it is missing.
        bare: Whether a Docker container that no unit starts runs it.
    """

    went_down = False  # with its container

    def __init__(
        self,
        folder: Path,
        service: str,
        config: ServingConfig,
        *,
        unit: str | None = None,
        env: Mapping[str, str] = MappingProxyType({}),
        gpu: str = "NVIDIA L4, 23034",
        bare: bool = False,
    ) -> None:
        self.folder, self.service, self.port = folder, service, free_port()
        self.units, self.state = folder / "units", folder / "state"
        self.units.mkdir(parents=True)
        (folder / "holds").touch()  # a restart waits for ``wait``
        self.env = self._shims(gpu) | dict(env)
        self.ssm = ssm_server()
        self.ec2 = sdk().client("ec2")
        made = self.ec2.run_instances(ImageId="ami-12c6146b", InstanceType=TYPE, MinCount=1, MaxCount=1)
        self.instance = made["Instances"][0]["InstanceId"]
        self.ssm.pings[self.instance] = lambda: "Online" if self.instance_state() == "running" else ""
        self.ssm.envs[self.instance] = self.env
        self.target = UnitTarget(
            service=service, region=REGION, instance=self.instance, unit=UNIT, accelerator="nvidia-l4" if gpu else "cpu"
        )
        env_file = folder / "vllm.env"
        env_file.write_text("HF_HUB_OFFLINE=1\nVLLM_API_KEY=sk-stays-here\n")
        words = " ".join((sys.executable, str(FAKE), *config.args, "--port", str(self.port)))
        text = (
            unit
            or "[Unit]\nDescription=vLLM\n\n[Service]\nEnvironmentFile={env}\nExecStart={exec}\nRestart=on-failure\n"
        )
        self.unit_file = self.units / UNIT
        self.unit_file.write_text(text.format(exec=words, env=env_file))
        self.docker = self._engine(config) if bare else None
        self.booted = False
        self.platform = self.open()
        self.wait()

    def _engine(self, config: ServingConfig) -> DockerEngine:
        """Start an engine with the container, as a person made it with docker run."""
        made = DockerEngine(self.folder / "docker.sock", self.env)
        cmd = [*config.args, "--port", str(self.port)]
        env = [*IMAGE_ENV, "HF_HUB_OFFLINE=1", "VLLM_API_KEY=sk-stays-here"]
        host = {"NetworkMode": "host", "RestartPolicy": {"Name": "unless-stopped", "MaximumRetryCount": 0},
                "DeviceRequests": [{"Driver": "nvidia", "Count": -1, "Capabilities": [["gpu"]]}]}  # fmt: skip
        body = {"Image": "vllm/vllm-openai:v0.32.0", "Entrypoint": [sys.executable, str(FAKE)], "Cmd": cmd, "Env": env,
                "Labels": {"team": "llm"}, "HostConfig": host}  # fmt: skip
        made.answer("POST", f"/containers/create?name={CONTAINER}", body)
        self.target = self.target.with_(unit="", container=CONTAINER)
        made.answer("POST", f"/containers/{CONTAINER}/start", {})
        made.called.clear()
        made.holds = True
        return made

    def _shims(self, gpu: str) -> dict[str, str]:
        """Put systemctl, journalctl and nvidia-smi of ours first on the PATH of the scripts."""
        programs = self.folder / "bin"
        programs.mkdir()
        for name in ("systemctl", "journalctl"):
            (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {SYSTEMD} {name} "$@"\n')
        if gpu:
            (programs / "nvidia-smi").write_text(f'#!/bin/sh\necho "{gpu}"\n')
        for program in programs.iterdir():
            program.chmod(0o755)
        (programs / "python3").symlink_to(Path(sys.executable).resolve())  # no version manager's shim in between
        own = {"PATH": f"{programs}:{os.environ['PATH']}", "FAKE_SYSTEMD": str(self.folder), "FAKE_FITS_LEN": "8192"}
        return {"HOME": str(self.folder), **own}

    def commands(self, aws: Aws, **waits: Any) -> InstanceCommands:
        """Return what runs the script, in the folders of this world."""
        now = SystemClock().now
        socket = str(self.folder / "docker.sock")
        return InstanceCommands(
            aws, unit_folder=str(self.units), state_folder=str(self.state), docker_socket=socket, now=now, **waits
        )

    def open(self, aws: Aws | None = None, **waits: Any) -> Ec2Platform:
        """Return the platform as a process that was started now sees it; ``waits`` for commands by another time."""
        clock, aws = SystemClock(), aws or Aws(sdk)
        commands = self.commands(aws, **waits)

        def meter(seen: Seen) -> Meter:
            return Meter(commands, seen, clock)

        return Ec2Platform({self.service: self.target}, aws, commands, meter)

    def instance_state(self) -> str:
        row = self.ec2.describe_instances(InstanceIds=[self.instance])["Reservations"][0]["Instances"][0]
        return str(row["State"]["Name"])

    def systemctl(self, *words: str) -> None:
        subprocess.run([str(self.folder / "bin/systemctl"), *words], env=self.env, check=True)

    def wait(self) -> None:
        """Let what is under way end: a machine boots or goes down with its unit, and a start comes up or fails."""
        runs = self.instance_state() == "running"
        if self.docker is not None:
            if runs != self.booted and (self.booted or not runs or self.went_down):
                self.docker.boot(up=runs)
                self.went_down = not runs
            self.booted = runs
            self.docker.release()
        elif runs != self.booted:
            self.systemctl("daemon-reload")
            self.systemctl("start" if runs else "stop", UNIT)
            self.booted = runs
        if self.docker is None and runs and (self.folder / f"{UNIT}.job").exists():
            self.systemctl("restart", UNIT)
        until = time.monotonic() + LIMIT_S
        while runs and self.platform.look(self.service).ready is None:
            assert time.monotonic() < until, "nothing came of it"
            time.sleep(0.02)

    def close(self) -> None:
        """End everything that was started."""
        if self.docker is not None:
            self.docker.close()
        else:
            self.systemctl("stop", UNIT)
        self.ec2.terminate_instances(InstanceIds=[self.instance])
        self.ssm.reset()
