"""Who else writes a workload: what puts its own state back all the time, and what does so at its next release."""

from dataclasses import dataclass

from agent.adapters.kubernetes.client import KubernetesApi
from agent.adapters.platform.kubernetes.container import server_of
from agent.adapters.platform.kubernetes.workload import Seen, annotations
from agent.core.service.serving import ConfigWriter
from agent.errors import SreError

ARGO_TRACKING = "argocd.argoproj.io/tracking-id"
ARGO_INSTANCE = "argocd.argoproj.io/instance"
ARGO_NAMESPACE = "argocd"
ARGO_MANAGERS = frozenset({"argocd-controller", "argocd-application-controller"})
INSTANCE = "app.kubernetes.io/instance"
"""Argo CD before 3.0 tracks what it wrote by this label unless told otherwise, and Helm sets it too.
Source: https://argo-cd.readthedocs.io/en/stable/user-guide/resource_tracking/, read 2026-11-22."""
FLUX = ("kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io")
HELM_RELEASE = "meta.helm.sh/release-name"
HELM_NAMESPACE = "meta.helm.sh/release-namespace"


def writer_of(api: KubernetesApi, seen: Seen) -> ConfigWriter | None:
    """Return who else writes the workload, the one that reverts changes first; None where only people do.

    Labels and annotations tell. Whether Argo CD reverts changes stands in its Application: one that cannot be read
    counts as one that does.
    """
    found = _operator(seen) or _flux(seen) or _argo(api, seen) or _helm(seen)
    if found is None:
        return None
    kind = {"deployment": "Deployment", "statefulset": "StatefulSet"}[seen.workload.kind]
    container = server_of(seen.spec["template"], seen.workload)["name"]
    return ConfigWriter(
        who=found.who,
        reverts=found.reverts,
        workload=f"{kind}/{seen.workload.name}",
        container=container,
        place=found.place,
        commands=found.commands,
    )


@dataclass(frozen=True, kw_only=True)
class _Found:
    who: str
    reverts: bool
    place: str
    commands: tuple[str, ...]


def _operator(seen: Seen) -> _Found | None:
    owners = seen.body["metadata"].get("ownerReferences") or []
    owner = next((o for o in owners if o.get("controller")), None)
    if owner is None:
        return None
    kind, name = owner["kind"], owner["name"]
    return _Found(
        who=f"the controller of {kind} {name!r}, which owns it and puts its own state back",
        reverts=True,
        place=f"{kind} {name!r}",
        commands=(f"kubectl edit {kind.lower()}/{name} --namespace {seen.workload.namespace}",),
    )


def _flux(seen: Seen) -> _Found | None:
    labels = seen.body["metadata"].get("labels") or {}
    for prefix in FLUX:
        name = labels.get(f"{prefix}/name")
        if name:
            kind = "Kustomization" if prefix.startswith("kustomize") else "HelmRelease"
            space = labels.get(f"{prefix}/namespace", "flux-system")
            return _Found(
                who=f"Flux {kind} '{space}/{name}', which puts the state of its source back",
                reverts=True,
                place=f"the source of Flux {kind} '{space}/{name}'",
                commands=(f"kubectl get {kind.lower()}/{name} --namespace {space} --output jsonpath='{{.spec}}'",),
            )
    return None


def _argo(api: KubernetesApi, seen: Seen) -> _Found | None:
    tracked = annotations(seen.body).get(ARGO_TRACKING, "")
    labels = seen.body["metadata"].get("labels") or {}
    name = tracked.partition(":")[0] or labels.get(ARGO_INSTANCE) or (_by_argo(seen) and labels.get(INSTANCE))
    if not name:
        return None
    space, _, name = name.rpartition("_")  # applications outside Argo CD's own namespace: NAMESPACE_NAME
    space = space or ARGO_NAMESPACE
    heals = _heals(api, space, name)
    if heals is False:
        who = f"Argo CD application {name!r} without self-heal: its next sync reverts the change"
    else:
        doubt = "" if heals else ": whether it heals itself could not be read, so it is taken for one that does"
        who = f"Argo CD application {name!r}, which reverts changes{doubt}"
    return _Found(
        who=who,
        reverts=heals is not False,
        place=f"the repository of Argo CD application {name!r}",
        commands=(f"kubectl get application/{name} --namespace {space} --output jsonpath='{{.spec.source}}'",),
    )


def _by_argo(seen: Seen) -> bool:
    """Whether Argo CD is among those who wrote the object."""
    return any(entry.get("manager") in ARGO_MANAGERS for entry in seen.body["metadata"].get("managedFields") or [])


def _heals(api: KubernetesApi, space: str, name: str) -> bool | None:
    """Whether an Argo CD application puts its own state back; None where it could not be read."""
    try:
        found = api.find(f"/apis/argoproj.io/v1alpha1/namespaces/{space}/applications/{name}")
    except SreError:
        return None
    if found is None:
        return None
    automated = ((found.get("spec") or {}).get("syncPolicy") or {}).get("automated") or {}
    return bool(automated.get("selfHeal")) and automated.get("enabled") is not False


def _helm(seen: Seen) -> _Found | None:
    held, labels = annotations(seen.body), seen.body["metadata"].get("labels") or {}
    release = held.get(HELM_RELEASE)
    if not release and labels.get("app.kubernetes.io/managed-by") != "Helm":
        return None
    release = release or labels.get(INSTANCE) or seen.workload.name
    space = held.get(HELM_NAMESPACE, seen.workload.namespace)
    return _Found(
        who=f"Helm release {release!r}: its next upgrade reverts the change",
        reverts=False,
        place=f"the values of Helm release {release!r}",
        commands=(f"helm get values {release} --namespace {space} --all",),
    )
