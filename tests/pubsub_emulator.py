"""Google's Pub/Sub emulator for tests and benchmarks, started with java directly: one process to end."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import grpc
from google.pubsub_v1 import PublisherClient, SubscriberClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

from tests.free_port import free_port

PROJECT = "example-project"


class Missing(Exception):
    """Java or the emulator's jar is not installed here."""


def jar() -> Path:
    """Return the emulator's jar, below the root of gcloud's SDK."""
    gcloud = shutil.which("gcloud")
    if gcloud is None or shutil.which("java") is None:
        raise Missing("java and gcloud with its pubsub-emulator component are needed")
    lib = Path(gcloud).resolve().parents[1] / "platform" / "pubsub-emulator" / "lib"
    found = sorted(lib.glob("cloud-pubsub-emulator-*-all.jar"))
    if not found:
        raise Missing("the emulator is not installed: gcloud components install pubsub-emulator")
    return found[-1]


class Emulator:
    """One running emulator, with clients to look at it."""

    def __init__(self, log: Path) -> None:
        port = free_port()
        self.host = f"127.0.0.1:{port}"
        command = [
            "java",
            "-Xshare:auto",
            "-XX:TieredStopAtLevel=1",
            "-jar",
            str(jar()),
            "--host=127.0.0.1",
            f"--port={port}",
        ]
        with log.open("wb") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=out, env=dict(os.environ))
        self._channel = grpc.insecure_channel(self.host)
        grpc.channel_ready_future(self._channel).result(timeout=60)
        self.publisher = PublisherClient(transport=PublisherGrpcTransport(channel=self._channel))
        self.subscriber = SubscriberClient(transport=SubscriberGrpcTransport(channel=self._channel))

    def stop(self) -> None:
        self._channel.close()
        self._process.terminate()
        self._process.wait(20)

    def topic(self, name: str, project: str = PROJECT) -> str:
        path = f"projects/{project}/topics/{name}"
        self.publisher.create_topic(request={"name": path})
        return path

    def subscribe(self, name: str, topic: str, project: str = PROJECT, **more) -> str:
        path = f"projects/{project}/subscriptions/{name}"
        self.subscriber.create_subscription(request={"name": path, "topic": topic, "ack_deadline_seconds": 600, **more})
        return path

    def push(self, name: str, topic: str, endpoint: str, project: str = PROJECT) -> str:
        """Push to an endpoint as the deployed subscriptions do, with the shortest back-off that the emulator keeps."""
        retry = {"minimum_backoff": {"seconds": 1}, "maximum_backoff": {"seconds": 2}}
        return self.subscribe(name, topic, project, push_config={"push_endpoint": endpoint}, retry_policy=retry)

    def pull(self, subscription: str, *, limit: int = 100, wait_s: float = 10) -> list:
        """Pull and acknowledge until something came, or the time is over."""
        until = time.monotonic() + wait_s
        while time.monotonic() < until:
            request = {"subscription": subscription, "max_messages": limit, "return_immediately": True}
            came = list(self.subscriber.pull(request=request, timeout=10).received_messages)
            if came:
                self.subscriber.acknowledge(request={"subscription": subscription, "ack_ids": [m.ack_id for m in came]})
                return came
        return []
