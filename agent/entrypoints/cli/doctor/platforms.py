"""What the platforms of the watched services let us see and do, as the operator who runs the doctor."""

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial

from agent.core.service.services import Services
from agent.entrypoints.cli.doctor.finding import Finding, bad, good, off, unknown
from agent.errors import DependencyFailed, SreError
from agent.settings import Settings

STREAM = "container_apps_log_stream"


def container_apps(settings: Settings, services: Services | None) -> Iterator[Finding]:
    """Look at each watched app: it is there, it is what services.toml says, and its logs can be found.

    Raises:
        SreError: No app is watched, or nothing leads to Azure.
    """
    if settings.platform.partition(":")[0] != "container_apps" or services is None:
        return
    from agent.app.azure_environment import app_ref, arm_api, readable_streams, watched_apps

    api = arm_api(settings)
    if not settings.container_apps_log_stream:
        yield off(STREAM, "a server that fails before Log Analytics has its first row is diagnosed by signals alone")
    for service in watched_apps(settings, services):
        ref = app_ref(settings, service)
        try:
            seen = api.seen(ref)
        except SreError as error:
            yield bad(f"container_apps:{service.name}", error.cause, error.hint)
            continue
        profile = seen.properties.get("workloadProfileName")
        has, count = seen.environment.accelerator(profile, service.accelerator)
        if (has, count) != (service.accelerator, service.accelerator_count):
            says = f"its workload profile {profile!r} has {count} x {has}, services.toml says otherwise"
            yield bad(f"container_apps:{service.name}", says, "correct accelerator in services.toml")
        elif seen.environment.workspace is None:
            says = "its environment sends no logs to Log Analytics, so only signals tell what it printed"
            yield bad(f"container_apps:{service.name}", says, "az containerapp env update --logs-destination")
        else:
            yield good(f"container_apps:{service.name}", f"{seen.newest}, on {profile!r} ({has})")
        if settings.container_apps_log_stream:
            yield _stream(service.name, seen.newest, partial(readable_streams, api, ref, seen.newest))


def _stream(name: str, newest: str, count: Callable[[], int]) -> Finding:
    """Say whether the log stream may be read: the replicas and the token that it needs."""
    check = f"{STREAM}:{name}"
    try:
        replicas = count()
    except SreError as error:
        return bad(check, error.cause, f"{error.hint}; or leave CONTAINER_APPS_LOG_STREAM off (docs/container-apps.md)")
    return good(check, f"on: {replicas} replicas of {newest}, and a token for their streams; it could open a shell too")


def cluster_rights(settings: Settings, services: Services | None) -> Iterator[Finding]:
    """Look at the rights of whoever runs the doctor: in the pod those of the agent; nothing is changed.

    Raises:
        SreError: No workload is watched, or the API server did not answer.
    """
    if settings.platform.partition(":")[0] != "kubernetes" or services is None:
        return
    from agent.app.cluster_access import missing_rights

    missing = missing_rights(settings, services)
    for right in missing:
        says = f"not allowed: {right.says}: {right.why}"
        yield bad("kubernetes:rights", says, "add it to a Role, see deploy/kubernetes/")
    if not missing:
        yield good("kubernetes:rights", "every right that the watched workloads need")


def ec2_units(settings: Settings, services: Services | None) -> Iterator[Finding]:
    """Look at each watched unit with the credentials of whoever runs the doctor.

    Raises:
        SreError: No unit is watched.
    """
    if settings.platform.partition(":")[0] != "ec2" or services is None:
        return
    from agent.app.ec2_environment import (
        failed_checks,
        log_says,
        missing_rights,
        open_ec2,
        unit_says,
        why_not_stopped,
    )

    opened = open_ec2(settings, services)
    for name in sorted(opened.names):
        try:
            yield good(f"ec2:{name}", unit_says(opened, name))
            failed = failed_checks(opened, name)
            if failed:
                yield bad(
                    f"ec2:status:{name}", failed, "look at the instance in the EC2 console: stop and start moves it"
                )
            yield good(f"ec2:log:{name}", log_says(opened, name))
            why = why_not_stopped(opened, name)
            if why:
                yield bad(f"ec2:stop:{name}", f"a stop would be refused: {why}", "see docs/ec2.md, 'Start and stop'")
            missing = missing_rights(opened, name)
            for call in missing:
                says = f"not allowed: {call.action}: {call.why}"
                yield bad(f"ec2:rights:{name}", says, "see docs/ec2.md, 'Rights'")
            if not missing:
                yield good(f"ec2:rights:{name}", "its instance may be started, stopped and stamped")
        except DependencyFailed as error:
            yield unknown(f"ec2:{name}", error.cause, error.hint)
        except SreError as error:
            yield bad(f"ec2:{name}", error.cause, error.hint)


def tpu_nodes(settings: Settings, services: Services | None, now: datetime) -> Iterator[Finding]:
    """Look at every watched node, with the credentials of whoever runs the doctor; nothing is changed.

    Raises:
        SreError: No node is watched, or Cloud TPU did not answer.
    """
    if not settings.platform.startswith("tpu_vm:") or services is None:
        return
    from agent.app.tpu_environment import missing_setup_of, watched_nodes

    for service in watched_nodes(settings, services):
        missing = missing_setup_of(settings, services, service, now)
        for says, hint in missing:
            yield bad(f"tpu:{service}", says, hint)
        if not missing:
            yield good(f"tpu:{service}", "the node reports, and a change can reach it")
