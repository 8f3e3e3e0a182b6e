"""A whole Cloud Run on loopback for tests and rehearsals: the API stand-in, a server that answers, and the adapter.

world = CloudRunWorld("gemma", config, bad=("--max-model-len", "65536"))   # or recorded=service_body
platform = world.open()
...
world.watch.go(400)          # rollouts end
world.close()
"""

import time
from typing import Any

from agent.adapters.platform.cloud_run.api import CloudRunApi, clients_over
from agent.adapters.platform.cloud_run.measure import Meter
from agent.adapters.platform.cloud_run.platform import CloudRunPlatform
from agent.adapters.platform.completion import CompletionClient
from agent.core.service.serving import Probe, ServingConfig
from tests.contracts import cloud_run_server as server
from tests.contracts import vllm_http as vllm
from tests.watch import Watch


class CloudRunWorld:
    """One service on a stand-in; ``fates`` says by a word of the arguments what becomes of a revision."""

    def __init__(
        self,
        service: str,
        config: ServingConfig | None = None,
        *,
        bad: tuple[str, str] | None = None,
        recorded: dict[str, Any] | None = None,
        timeout_s: float = 5.0,
        key: str | None = "key",
        key_name: str | None = None,
        spare: int | None = None,
        watch: Any = None,
    ) -> None:
        self.watch = watch or Watch()
        self.vllm = vllm.VllmHttp()
        self.bad = bad
        self.fate = None  # overrides what the words say
        self.stand_in = server.StandIn(now=self.watch.now, fate=self._fate, gpus_allowed=2)
        assert (config is None) != (recorded is None)
        body = dict(recorded) if recorded is not None else body_of(service, config)
        body["uri"] = self.vllm.url
        self.name = self.stand_in.put(body)
        self.stand_in.uri = self.vllm.url
        self.stand_in.start()
        self.timeout_s = timeout_s
        self.key, self.key_name, self.spare = key, key_name, spare
        self.audiences: list[str] = []
        self._channels: list[Any] = []
        self.service = service

    def open(self, *, clients: Any = None) -> CloudRunPlatform:
        """Return one more adapter, with a connection of its own."""
        channel = self.stand_in.channel()
        self._channels.append(channel)
        client = CompletionClient(
            id_token=self._token, monotonic=time.monotonic, api_key=lambda _: self.key, timeout_s=self.timeout_s
        )
        meter = Meter(client, self.watch, key_name=lambda _: self.key_name)
        api = CloudRunApi(clients or (lambda: clients_over(channel)))
        return CloudRunPlatform(api, {self.service: self.name}, meter, spare=lambda _: self.spare)

    def close(self) -> None:
        for channel in self._channels:
            channel.close()
        self.stand_in.stop()
        self.vllm.stop()

    def _token(self, audience: str) -> str:
        self.audiences.append(audience)
        return "id-token"

    def _fate(self, template: Any) -> Any:
        if self.fate is not None:
            return self.fate
        words = list(template.containers[0].args)
        failed = self.bad is not None and any(words[i : i + 2] == list(self.bad) for i in range(len(words)))
        message = "Revision '{revision}' is not ready: the container did not start"
        return server.Fate(up=not failed, after_s=300, message=message)


def body_of(service: str, config: ServingConfig, *, ready: bool = True) -> dict[str, Any]:
    """Return a service body in the API's JSON that runs a configuration; not ``ready``: its only revision failed."""
    name = f"projects/example-project/locations/us-central1/services/{service}"
    revision = f"{name}/revisions/{service}-00001-abc"
    env = [
        {"name": e.name, "value": e.value}
        if e.secret is None
        else {"name": e.name, "valueSource": {"secretKeyRef": {"secret": e.secret, "version": "3"}}}
        for e in config.env
    ]
    container = {
        "name": f"{service}-1",
        "image": config.image,
        "command": list(config.command),
        "args": list(config.args),
        "env": env,
        "resources": {
            "limits": {"cpu": f"{config.cpu:g}", "memory": f"{config.memory_mib}Mi", "nvidia.com/gpu": "1"},
            "startupCpuBoost": True,
        },
        "ports": [{"name": "http1", "containerPort": 8080}],
        "volumeMounts": [{"name": v.name, "mountPath": v.mount_path} for v in config.volumes],
        "startupProbe": _probe(config.startup_probe),
    }
    volumes = [
        {"name": v.name, "gcs": {"bucket": v.bucket, "readOnly": v.read_only, "mountOptions": list(v.options)}}
        for v in config.volumes
    ]
    return {
        "name": name,
        "uid": "3bb80da4-8c51-4788-9a66-11f17844ec56",
        "generation": "1",
        "etag": '"one"',
        "template": {
            "scaling": {"minInstanceCount": config.min_instances, "maxInstanceCount": config.max_instances},
            "containers": [container],
            "volumes": volumes,
            "maxInstanceRequestConcurrency": config.concurrency,
            "nodeSelector": {"accelerator": config.accelerator},
            "gpuZonalRedundancyDisabled": True,
        },
        "traffic": [{"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100}],
        "trafficStatuses": [{"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100}],
        "observedGeneration": "1",
        "terminalCondition": {"type": "Ready", "state": "CONDITION_SUCCEEDED" if ready else "CONDITION_FAILED"},
        "latestReadyRevision": revision if ready else "",
        "latestCreatedRevision": revision,
    }


def _probe(probe: Probe) -> dict[str, Any]:
    assert probe.kind == "http"
    return {
        "initialDelaySeconds": probe.initial_delay_s,
        "periodSeconds": probe.period_s,
        "timeoutSeconds": probe.timeout_s,
        "failureThreshold": probe.failure_threshold,
        "httpGet": {"path": probe.path, "port": probe.port},
    }
