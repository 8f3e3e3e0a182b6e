"""The same warmed process over container apps: each child opens a client of its own to the stand-in of ARM."""

import time

import azure.mgmt.appcontainers  # noqa: F401 - imported once, before anything is forked

from agent.adapters.clock import SystemClock
from agent.adapters.platform.completion import CompletionClient
from agent.adapters.platform.container_apps.api import ContainerAppsApi
from agent.adapters.platform.container_apps.app_ref import AppRef
from agent.adapters.platform.container_apps.measure import Meter
from agent.adapters.platform.container_apps.platform import ContainerAppsPlatform
from tests.contracts import arm_server as arm
from tests.journeys.killed_on_kubernetes import main


def container_apps(case, service):
    """Return the adapter over the app of a case, by a connection of its own."""
    client = CompletionClient(id_token=None, monotonic=time.monotonic, timeout_s=5)
    meter = Meter(client, SystemClock(), url_of=lambda host: f"http://{host}")
    ref = AppRef(subscription=arm.SUBSCRIPTION, group=arm.GROUP, name=service)
    api = ContainerAppsApi(lambda: arm.sdk_client(case["url"]), arm.SUBSCRIPTION)
    return ContainerAppsPlatform(api, {service: ref}, meter)


if __name__ == "__main__":
    main(container_apps)
