"""A TPU node on loopback: Cloud TPU's stand-in, the real node script with a docker that runs processes, and the adapter."""

import json
import os
import sys
import time
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import grpc
from google.cloud import tpu_v2

from agent.adapters.clock import SystemClock
from agent.adapters.platform.completion import CompletionClient
from agent.adapters.platform.reply_measurements import ReplyMeasurements
from agent.adapters.platform.tpu_vm import on_node
from agent.adapters.platform.tpu_vm.api import TpuApi, client_over
from agent.adapters.platform.tpu_vm.describe import NodeRef
from agent.adapters.platform.tpu_vm.measure import Meter
from agent.adapters.platform.tpu_vm.platform import TpuVmPlatform
from agent.core.service.serving import ServingConfig
from tests.contracts.docker_stand_in import Docker
from tests.contracts.host_world import FAKE
from tests.contracts.tpu_stand_in import MetadataServer, State, TpuStandIn
from tests.free_port import free_port

LIMIT_S = 20.0
PARENT = "projects/example-project/locations/southamerica-west1-a"
SCRIPT = Path(on_node.__file__).read_text()


def node_of(service: str, config: ServingConfig, **more: Any) -> tpu_v2.Node:
    """Return a ready v6e-4 whose metadata asks for a configuration."""
    server = {"revision": f"{service}-1", "config": config.model_dump(mode="json", exclude_defaults=True)}
    fields = {
        "name": f"{PARENT}/nodes/{service}",
        "id": 4711,
        "accelerator_type": "v6e-4",
        "state": tpu_v2.Node.State.READY,
        "queued_resource": f"{PARENT}/queuedResources/{service}-qr",
        "network_endpoints": [tpu_v2.NetworkEndpoint(ip_address="127.0.0.1", port=8470)],
        "metadata": {
            "startup-script": SCRIPT,
            "enable-guest-attributes": "TRUE",
            "vllm-server": json.dumps(server, indent=1),
            "ssh-keys": "ada:ssh-ed25519 AAAA",
        },
    }
    return tpu_v2.Node(**(fields | more))


def queued_of(service: str, node: tpu_v2.Node, state: str, **more: Any) -> tpu_v2.QueuedResource:
    """Return the queued resource of a node."""
    spec = tpu_v2.QueuedResource.Tpu.NodeSpec(
        parent=PARENT, node_id=service, node={"accelerator_type": "v6e-4", "metadata": dict(node.metadata)}
    )
    return tpu_v2.QueuedResource(
        name=f"{PARENT}/queuedResources/{service}-qr",
        tpu={"node_spec": [spec]},
        state=tpu_v2.QueuedResourceState(state=getattr(State, state), **more),
    )


class TpuWorld:
    """One node; ``wait`` lets its script go on until nothing is under way.

    Args:
        folder: For the containers.
        service: Its name.
        config: What to run; the port is a free one.
        environ: More variables of the program that plays the server.
    """

    def __init__(self, folder: Path, service: str, config: ServingConfig, **environ: str) -> None:
        self.service, self.folder = service, folder
        self.config = config.with_(args=(*config.args, "--port", str(free_port())))
        self.cloud = TpuStandIn()
        node = node_of(service, self.config)
        self.name = node.name
        self.cloud.nodes[node.name] = node
        self.cloud.queued[node.queued_resource] = queued_of(service, node, "ACTIVE")
        self.metadata = MetadataServer(self.cloud, node.name, {"vllm-api-key": "node-key"})
        self.environ = {
            "DOCKER_STATE": str(folder),
            "DOCKER_RUNS": json.dumps([sys.executable, str(FAKE)]),
            "FAKE_FITS_LEN": "8192",
        } | environ
        self.docker, self.secrets = on_node.docker, on_node.SECRETS
        on_node.docker, on_node.SECRETS = self._docker, f"http://{self.metadata.host}"
        self.channels: list[Any] = []
        self.script = self.booted()
        self.platform = self.open()
        self.wait()

    def booted(self, boot: str = "boot-1") -> on_node.Node:
        """Return the node's script as it is after a start of the node."""
        return on_node.Node(on_node.Metadata(self.metadata.host), boot)

    def open(self) -> TpuVmPlatform:
        """Return one more adapter, with a connection of its own."""
        channel = grpc.insecure_channel(self.cloud.address)
        self.channels.append(channel)
        clock = SystemClock()
        client = CompletionClient(id_token=None, monotonic=time.monotonic, timeout_s=5)
        meter = Meter(client, ReplyMeasurements(clock))
        queued = f"{PARENT}/queuedResources/{self.service}-qr"
        ref = NodeRef(service=self.service, node=self.name, queued_resource=queued)
        return TpuVmPlatform(TpuApi(lambda: client_over(channel)), {self.service: ref}, meter, clock)

    def wait(self) -> None:
        """Let what is under way end."""
        until = time.monotonic() + LIMIT_S
        while self.name in self.cloud.nodes and self.script.step()["state"] == "starting":
            assert time.monotonic() < until, f"nothing came of it: {self.log()}"
            time.sleep(0.02)

    def suspend(self, by: str = "SERVICE") -> None:
        """Take the node back, as Cloud TPU does with a spot one."""
        node = self.cloud.nodes.pop(self.name)
        on_node.docker("rm", "--force", on_node.NAME)
        initiator = getattr(tpu_v2.QueuedResourceState.StateInitiator, by)
        self.cloud.queued[node.queued_resource] = queued_of(self.service, node, "SUSPENDED", state_initiator=initiator)

    def log(self) -> str:
        """Return what the container printed."""
        path = self.folder / f"{on_node.NAME}.log"
        return path.read_text() if path.exists() else ""

    def docker_calls(self, verb: str) -> list[list[str]]:
        """Return the words of every call of docker of one kind."""
        rows = (json.loads(line) for line in (self.folder / "calls").read_text().splitlines())
        return [words for words in rows if words[0] == verb]

    def close(self) -> None:
        """End everything that was started."""
        on_node.docker("rm", "--force", on_node.NAME)
        on_node.docker, on_node.SECRETS = self.docker, self.secrets
        for channel in self.channels:
            channel.close()
        self.metadata.close()
        self.cloud.close()

    def _docker(self, *words: str, environ: dict[str, str] | None = None) -> CompletedProcess[str]:
        """The same program as in a process of its own, which costs a start of Python for each call."""
        docker = Docker({**os.environ, **self.environ, **(environ or {})})
        code = docker.call(*words)
        return CompletedProcess(words, code, docker.out, docker.err)
