"""One container app on loopback for tests and rehearsals: ARM's stand-in, a server that answers, and the adapter.

world = ArmWorld("gemma", config, bad=("--max-model-len", "65536"))
platform = world.open()
world.watch.go(400)          # rollouts end
world.close()
"""

import time
from typing import Any
from urllib.parse import urlsplit

from agent.adapters.platform.completion import CompletionClient
from agent.adapters.platform.container_apps.api import ContainerAppsApi
from agent.adapters.platform.container_apps.app_ref import AppRef
from agent.adapters.platform.container_apps.measure import Meter
from agent.adapters.platform.container_apps.platform import ContainerAppsPlatform
from agent.core.service.serving import Probe, ServingConfig
from tests.contracts import arm_server as arm
from tests.contracts import vllm_http as vllm
from tests.watch import Watch

SHAPES = {"nvidia-a100-80gb": "gpu", "nvidia-t4": "small"}


class ArmWorld:
    """One app on a stand-in; ``fate`` overrides what its flags say of a revision."""

    def __init__(
        self,
        service: str,
        config: ServingConfig,
        *,
        bad: tuple[str, str] | None = None,
        mode: str = "Single",
        up: bool = True,
        watch: Any = None,
        after_s: float = 300,
        spare: int | None = None,
    ) -> None:
        self.watch = watch or Watch()
        self.vllm = vllm.VllmHttp()
        self.service, self.bad, self.after_s, self.spare = service, bad, after_s, spare
        self.fate: arm.Fate | None = None
        self.arm = arm.ArmServer(now=self.watch.now, fate=self._fate, fqdn=urlsplit(self.vllm.url).netloc)
        self.arm.put(service, body_of(config, mode=mode), up=up)

    def open(self, *, connect: Any = None, subscription: str = arm.SUBSCRIPTION, group: str = arm.GROUP) -> Any:
        """Return one more adapter, with a client of its own."""
        client = CompletionClient(id_token=None, monotonic=time.monotonic, api_key=lambda _: "key", timeout_s=5)
        meter = Meter(client, self.watch, url_of=lambda host: f"http://{host}")
        ref = AppRef(
            subscription=subscription,
            group=group,
            name=self.service,
            accelerator="nvidia-a100-80gb",
            environment="gpus",
        )
        api = ContainerAppsApi(connect or (lambda: arm.sdk_client(self.arm.url)), subscription)
        return ContainerAppsPlatform(api, {self.service: ref}, meter, spare=lambda _: self.spare)

    def close(self) -> None:
        self.arm.close()
        self.vllm.stop()

    def _fate(self, template: Any) -> arm.Fate:
        if self.fate is not None:
            return self.fate
        args = list(template["containers"][0]["args"])
        failed = self.bad is not None and any(_says(args, i, self.bad) for i in range(len(args)))
        return arm.Fate(up=not failed, after_s=self.after_s)


def _says(args: list[str], place: int, bad: tuple[str, str]) -> bool:
    return tuple(args[place : place + 2]) == bad or args[place] == "=".join(bad)


def body_of(config: ServingConfig, *, mode: str = "Single") -> dict[str, Any]:
    """Return an app in ARM's JSON that runs a configuration."""
    env = [
        {"name": e.name, "value": e.value} if e.secret is None else {"name": e.name, "secretRef": e.secret}
        for e in config.env
    ]
    container = {
        "name": "vllm",
        "image": config.image,
        "command": list(config.command),
        "args": list(config.args),
        "env": env,
        "resources": {"cpu": config.cpu, "memory": f"{(config.memory_mib or 0) // 1024}Gi", "ephemeralStorage": "8Gi"},
        "probes": [_probe(config.startup_probe)] if config.startup_probe else [],
    }
    ingress = {
        "external": True,
        "targetPort": 8080,
        "transport": "Auto",
        "traffic": [{"latestRevision": True, "weight": 100}],
    }
    return {
        "location": "Sweden Central",
        "tags": {"team": "llm"},
        "properties": {
            "environmentId": arm.ENVIRONMENT,
            "workloadProfileName": SHAPES.get(config.accelerator or "", "Consumption"),
            "configuration": {
                "activeRevisionsMode": mode,
                "secrets": [{"name": e.secret, "value": "s3cret"} for e in config.env if e.secret],
                "ingress": ingress,
                "maxInactiveRevisions": 100,
            },
            "template": {
                "revisionSuffix": "",
                "terminationGracePeriodSeconds": None,
                "containers": [container],
                "initContainers": None,
                "scale": {
                    "minReplicas": config.min_instances,
                    "maxReplicas": config.max_instances,
                    "cooldownPeriod": 300,
                    "pollingInterval": 30,
                    "rules": None,
                },
                "volumes": [],
            },
        },
    }


def _probe(probe: Probe) -> dict[str, Any]:
    assert probe.kind == "http"
    return {
        "type": "Startup",
        "httpGet": {"path": probe.path, "port": probe.port, "scheme": "HTTP"},
        "periodSeconds": probe.period_s,
        "timeoutSeconds": probe.timeout_s,
        "failureThreshold": probe.failure_threshold,
    }
