"""The agent beside a real Kubernetes control plane on this machine, with a vLLM server that is killed for memory.

``make kube``: etcd, API server, controllers and scheduler from the rig beside the repository, a node with one GPU that
a stand-in kubelet plays, a Deployment that asks for too much, and the agent that watches it. Ctrl-C ends all of it.
"""

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from tools.kubelet_logs import KubeletLogs, LiveLog

ROOT = Path(__file__).resolve().parents[1]
RIG = ROOT.parent / "shared" / "rigs" / "kube"
MANIFESTS = ROOT / "deploy" / "kubernetes"
TOO_LONG = "65536"

OOM_LOG = """INFO 11-22 10:00:01 [api_server.py:1896] vLLM API server version 0.32.0
INFO 11-22 10:00:09 [gpu_model_runner.py:2602] Starting to load model google/gemma-3-27b-it...
ERROR 11-22 10:00:41 [core.py:708] EngineCore failed to start.
ERROR 11-22 10:00:41 [core.py:708]   File "vllm/v1/worker/gpu_model_runner.py", line 2620, in load_model
ERROR 11-22 10:00:41 [core.py:708] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.62 GiB. GPU 0 has a \
total capacity of 21.96 GiB of which 1.15 GiB is free. Including non-PyTorch memory, this process has 20.80 GiB memory \
in use.
RuntimeError: Engine core initialization failed. See root cause above."""


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
    logs = KubeletLogs(running.certificate, lambda _ns, pod, _container, previous: OOM_LOG if previous else live[pod])
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
    environ = {
        **os.environ,  # noqa: TID251 - the agent's own process
        "PLATFORM": "kubernetes",
        "KUBECONFIG": str(running.kubeconfig),
        "STORE": f"sqlite:{folder / 'state'}",
        "SERVICES": str(MANIFESTS / "services.toml"),
    }
    print(f"== kubectl --kubeconfig {running.kubeconfig} -n llm get pods ==", flush=True)
    agent = [sys.executable, "-m", "agent.entrypoints.cli.main", "up", "--port", str(port)]
    with subprocess.Popen(agent, env=environ, cwd=ROOT) as process:
        try:
            process.wait()
        except KeyboardInterrupt:
            process.terminate()
            process.wait(30)
            raise


def _life(kubelet: ModuleType, pod: Any) -> Any:
    asked = pod.spec.containers[0].args or []
    return kubelet.Life.CRASH_LOOP if any(TOO_LONG in word for word in asked) else kubelet.Life.READY


def _deployment() -> dict[str, Any]:
    """A vLLM Deployment for one card, as people write it, that asks for a context that does not fit."""
    probe = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 15, "failureThreshold": 56}
    server = {
        "name": "vllm",
        "image": "vllm/vllm-openai:v0.32.0",
        "args": ["--model=google/gemma-3-27b-it", f"--max-model-len={TOO_LONG}"],
        "ports": [{"containerPort": 8000}],
        "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "8", "memory": "64Gi"}},
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
