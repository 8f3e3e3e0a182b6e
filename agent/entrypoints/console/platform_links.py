"""Where people look further: the platform's own pages and commands for the log and the revision of a service."""

import shlex
from datetime import datetime, timedelta
from urllib.parse import quote

from agent.core.service.services import Service
from agent.core.value import Value

_BEFORE = timedelta(hours=1)


class PlatformLink(Value):
    """One way to look further: an address to open, or a command to run."""

    label: str
    url: str = ""
    command: str = ""


def platform_links(service: Service, revision: str | None, opened_at: datetime) -> tuple[PlatformLink, ...]:
    """Return where the log and the revision of a service can be looked at, as far as there is a place.

    Args:
        service: As services.toml names it.
        revision: The revision in trouble, where it is known.
        opened_at: When the incident was opened; the log is shown from an hour before.
    """
    match service.platform:
        case "cloud_run":
            return _cloud_run(service, revision, opened_at)
        case "tpu_vm" if service.project and service.location:
            path = f"compute/tpus/details/{_part(service.location)}/{_part(service.name)}"
            url = f"https://console.cloud.google.com/{path}?project={_part(service.project)}"
            return (PlatformLink(label="TPU node", url=url),)
        case "kubernetes":
            return _kubernetes(service)
        case "container_apps" if service.resource_group:
            named = f"--name {service.name} --resource-group {service.resource_group}"
            return (PlatformLink(label="Log", command=f"az containerapp logs show {named} --tail 100"),)
        case "ec2" if service.location and service.unit:
            command = f"journalctl -u {shlex.quote(service.unit)} -n 100"
            return (*_instance(service), PlatformLink(label="Log, on the instance", command=command))
        case _:
            return ()


def _cloud_run(service: Service, revision: str | None, opened_at: datetime) -> tuple[PlatformLink, ...]:
    """Pages of the Google Cloud console; the form of a Logs Explorer address is in its documentation.

    Source: https://cloud.google.com/logging/docs/view/logs-explorer-interface (2026-11-22).
    """
    console, project = "https://console.cloud.google.com", _part(service.project or "")
    words = ['resource.type="cloud_run_revision"', f'resource.labels.service_name="{service.name}"']
    words += [f'resource.labels.revision_name="{revision}"'] if revision else []
    start = (opened_at - _BEFORE).strftime("%Y-%m-%dT%H:%M:%SZ")
    log = f"{console}/logs/query;query={_part(chr(10).join(words))};startTime={_part(start)}?project={project}"
    where = f"run/detail/{_part(service.location or '')}/{_part(service.name)}/revisions"
    return (
        PlatformLink(label="Log", url=log),
        PlatformLink(label="Revisions", url=f"{console}/{where}?project={project}"),
    )


def _kubernetes(service: Service) -> tuple[PlatformLink, ...]:
    workload = service.workload or f"deployment/{service.name}"
    named = [*(["--namespace", service.namespace] if service.namespace else [])]
    named += ["--context", service.context] if service.context else []
    of = [*named, *(["--container", service.container] if service.container else [])]
    return (
        PlatformLink(label="Log", command=shlex.join(["kubectl", "logs", workload, *of, "--tail", "100"])),
        PlatformLink(label="Rollout", command=shlex.join(["kubectl", "describe", workload, *named])),
    )


def _instance(service: Service) -> tuple[PlatformLink, ...]:
    if not (service.instance or "").startswith("i-"):
        return ()
    region = _part(service.location or "")
    page = f"https://{region}.console.aws.amazon.com/ec2/home?region={region}"
    return (PlatformLink(label="Instance", url=f"{page}#InstanceDetails:instanceId={service.instance}"),)


def _part(text: str) -> str:
    return quote(text, safe="")
