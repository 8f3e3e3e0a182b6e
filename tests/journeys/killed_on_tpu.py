"""The same warmed process over TPU nodes: each child opens a client of its own to the stand-in of Cloud TPU."""

import time

import google.cloud.tpu_v2  # noqa: F401 - imported once, before anything is forked

from agent.adapters.clock import SystemClock
from agent.adapters.platform.completion import CompletionClient
from agent.adapters.platform.reply_measurements import ReplyMeasurements
from agent.adapters.platform.tpu_vm.api import TpuApi, client_at
from agent.adapters.platform.tpu_vm.describe import NodeRef
from agent.adapters.platform.tpu_vm.measure import Meter
from agent.adapters.platform.tpu_vm.platform import TpuVmPlatform
from tests.journeys.killed_on_kubernetes import main


def tpu_vm(case, service):
    """Return the adapter over the node of a case, by a connection of its own."""
    client = CompletionClient(id_token=None, monotonic=time.monotonic, timeout_s=5)
    meter = Meter(client, ReplyMeasurements(SystemClock()))
    ref = NodeRef(service=service, node=case["node"])
    return TpuVmPlatform(TpuApi(lambda: client_at(case["url"])), {service: ref}, meter, SystemClock())


if __name__ == "__main__":
    main(tpu_vm)
