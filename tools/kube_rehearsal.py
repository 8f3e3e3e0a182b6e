"""The agent beside a real Kubernetes control plane on this machine, with a vLLM server that is killed for memory.

``make kube``: etcd, API server, controllers and scheduler from the rig beside the repository, a node with one GPU that
a stand-in kubelet plays, a Deployment that asks for too much, and the agent that watches it. Ctrl-C ends all of it.
"""

import argparse
import importlib.util
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from tools.kubelet_logs import KubeletLogs, LiveLog

ROOT = Path(__file__).resolve().parents[1]
RIG = ROOT.parent / "shared" / "rigs" / "kube"
EXAMPLE = ROOT / "examples" / "gemma4-31b-l4-oom"
"""A recorded incident: the flags, the model and the log are its own; a Deployment takes the place of its service."""

SERVICE = """[[service]]
name = "vllm"
platform = "kubernetes"
namespace = "llm"
workload = "deployment/vllm"
model = "google/gemma-4-31B-it-qat-w4a16-ct"
checkpoint = "/mnt/models/gemma-4-31B-it-qat-w4a16-ct"
mounts = { "/mnt/models" = "gs://example-models" }
accelerator = "nvidia-l4"
vllm = "0.22.1"
owner = "console"

[service.needs]
context = 4096
users = 2
tokens_per_s = 3
"""


def main(words: list[str] | None = None) -> int:
    """Run until Ctrl-C; 3 where the rig or a package of it is absent."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--rig", type=Path, default=RIG)
    args = parser.parse_args(words)
    if not (args.rig / "control_plane.py").is_file():
        absent = f"There is no control plane to start: {args.rig} is absent, and it is not part of this repository."
        print(f"{absent} With a cluster of your own, follow docs/kubernetes.md.", file=sys.stderr)
        return 3
    plane, kubelet = _module(args.rig, "control_plane"), _module(args.rig, "kubelet")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        with ExitStack() as stack:
            _rehearse(stack, plane, kubelet, args.port)
    except plane.ControlPlaneError as error:
        print(f"The control plane was not started: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("everything has ended", file=sys.stderr)
    return 0


def _rehearse(stack: ExitStack, plane: ModuleType, kubelet: ModuleType, port: int) -> None:
    from kubernetes import client, config

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sre-agent-kube-")))
    print("== starting etcd, API server, controllers and scheduler (about ten seconds) ==", flush=True)
    programs = Path(tempfile.gettempdir()) / "sre-agent-kube-programs"  # 254 MB, kept for the next time
    running = stack.enter_context(plane.control_plane(folder / "plane", binaries=programs))
    connect: Any = config.new_client_from_config
    api = connect(str(running.kubeconfig))
    live: dict[str, LiveLog] = defaultdict(LiveLog)
    failed = (EXAMPLE / "instance.log").read_text()
    logs = KubeletLogs(running.certificate, lambda _ns, pod, _container, previous: failed if previous else live[pod])
    stack.callback(logs.close)
    kubelet.make_node(api, "gpu-node", gpus=1, memory="128Gi")
    addresses = [{"type": "InternalIP", "address": "127.0.0.1"}]
    endpoint = {"daemonEndpoints": {"kubeletEndpoint": {"Port": logs.port}}, "addresses": addresses}
    core: Any = client.CoreV1Api(api)
    core.patch_node_status("gpu-node", {"status": endpoint})
    core.create_namespace({"metadata": {"name": "llm"}})
    apps: Any = client.AppsV1Api(api)
    apps.create_namespaced_deployment("llm", _deployment())
    stack.enter_context(kubelet.StandInKubelet(api, lambda pod: _life(kubelet, pod)))
    services = folder / "services.toml"
    services.write_text(SERVICE)
    environ = {
        **os.environ,  # noqa: TID251 - the agent's own process
        "PLATFORM": "kubernetes",
        "KUBECONFIG": str(running.kubeconfig),
        "STORE": f"sqlite:{folder / 'state'}",
        "SERVICES": str(services),
    }
    _say_what_comes(environ)
    agent = [sys.executable, "-m", "agent.entrypoints.cli.main", "up", "--port", str(port)]
    with subprocess.Popen(agent, env=environ, cwd=ROOT) as process:
        try:
            process.wait()
        except KeyboardInterrupt:
            process.terminate()
            process.wait(30)
            raise


def _say_what_comes(environ: dict[str, str]) -> None:
    """Tell what the newcomer will see, and how to look at it and to decide from another terminal."""
    config = environ["KUBECONFIG"]
    names = ("PLATFORM", "KUBECONFIG", "STORE", "SERVICES")
    print("== the Deployment llm/vllm is killed while it loads; its incident is in the console within a minute ==")
    print("   Approve the plan there: the Deployment is patched, and its pod is played ready. No model is behind it,")
    print("   so the completion that verifies the change gets no answer, and the end is not RESOLVED.")
    print("   From another terminal, in this folder:")
    print(f"     export {' '.join(f'{name}={shlex.quote(environ[name])}' for name in names)}")
    print("     .venv/bin/sre-agent incidents")
    print(f"     kubectl --kubeconfig {config} -n llm get pods    (if you have kubectl)", flush=True)


def _life(kubelet: ModuleType, pod: Any) -> Any:
    return kubelet.Life.CRASH_LOOP if pod.spec.containers[0].args == _recorded()["args"] else kubelet.Life.READY


def _recorded() -> dict[str, Any]:
    config: dict[str, Any] = tomllib.loads((EXAMPLE / "scenario.toml").read_text())["live"]["config"]
    return config


def _deployment() -> dict[str, Any]:
    """A vLLM Deployment for one card, as people write it, that asks for more memory than the card has."""
    recorded = _recorded()
    probe = {"httpGet": {"path": "/health", "port": 8080}, "periodSeconds": 15, "failureThreshold": 56}
    server = {
        "name": "vllm",
        "image": "vllm/vllm-openai:v0.22.1",
        "command": recorded["command"],
        "args": recorded["args"],
        "env": recorded["env"],
        "ports": [{"containerPort": 8080}],
        "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "8", "memory": "32Gi"}},
        "startupProbe": probe,
    }
    template = {"metadata": {"labels": {"app": "vllm"}}, "spec": {"containers": [server]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "vllm"}}, "template": template}
    return {"metadata": {"name": "vllm"}, "spec": spec}


def _module(folder: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"kube_rig_{name}", folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
