"""Who else writes a workload, from labels, annotations, owners and Argo CD's Application."""

import pytest

from agent.adapters.platform.kubernetes.writers import writer_of
from agent.errors import PolicyRefused
from tests.agent.adapters.platform.kubernetes.seen import seen


class Applications:
    """An API server that has one Application, or none, or says nothing of it."""

    def __init__(self, spec: dict | None = None, *, denied: bool = False) -> None:
        self.spec, self.denied = spec, denied
        self.asked: list[str] = []

    def find(self, path: str) -> dict | None:
        self.asked.append(path)
        if self.denied:
            raise PolicyRefused("it was not read", why="forbidden", hint="none")
        return None if self.spec is None else {"spec": self.spec}


TRACKED = {"annotations": {"argocd.argoproj.io/tracking-id": "llm:apps/Deployment:llm/gemma"}}
ARGO_2 = {
    "labels": {"app.kubernetes.io/instance": "llm"},
    "managedFields": [{"manager": "argocd-application-controller", "operation": "Update"}],
}
OWNER = {"kind": "InferenceService", "name": "gemma", "uid": "o", "controller": True}
SYNC = {"syncPolicy": {"automated": {"selfHeal": True}}}
CASES = {
    "only people": ({}, {}, None),
    "an operator": ({"ownerReferences": [OWNER]}, {}, ("InferenceService 'gemma'", True)),
    "an owner that does not control": ({"ownerReferences": [OWNER | {"controller": False}]}, {}, None),
    "Flux": ({"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}}, {}, ("Flux Kustomization 'flux-system/apps'", True)),
    "Flux's Helm": ({"labels": {"helm.toolkit.fluxcd.io/name": "a", "helm.toolkit.fluxcd.io/namespace": "n"}}, {}, ("'n/a'", True)),
    "Argo CD with self-heal": (TRACKED, {"spec": SYNC}, ("Argo CD application 'llm', which reverts", True)),
    "Argo CD without": (TRACKED, {"spec": {"syncPolicy": {"automated": {}}}}, ("without self-heal", False)),
    "Argo CD, switched off": (TRACKED, {"spec": {"syncPolicy": {"automated": {"selfHeal": True, "enabled": False}}}}, ("without", False)),
    "Argo CD, unread": (TRACKED, {"denied": True}, ("could not be read", True)),
    "Argo CD, no such application": (TRACKED, {}, ("could not be read", True)),
    "Argo CD before 3.0": (ARGO_2, {"spec": SYNC}, ("Argo CD application 'llm', which reverts", True)),
    "that label of anybody else": ({"labels": ARGO_2["labels"]}, {"spec": SYNC}, None),
    "Helm": ({"annotations": {"meta.helm.sh/release-name": "stack"}}, {}, ("Helm release 'stack'", False)),
    "Helm by its label": ({"labels": {"app.kubernetes.io/managed-by": "Helm"}}, {}, ("Helm release 'gemma'", False)),
    "Helm under Argo CD": (
        {"annotations": TRACKED["annotations"] | {"meta.helm.sh/release-name": "s"}}, {"spec": SYNC}, ("Argo CD", True)
    ),
}  # fmt: skip


@pytest.mark.parametrize(("metadata", "server", "said"), CASES.values(), ids=CASES)
def test_who_else_writes_is_told(metadata: dict, server: dict, said: tuple[str, bool] | None) -> None:
    """Doubt about Argo CD counts as self-heal: a change that does not last would look like one that failed."""
    found = writer_of(Applications(**server), seen(metadata=metadata))
    if said is None:
        assert found is None
    else:
        assert said[0] in found.who
        assert found.reverts is said[1]
        assert found.commands


def test_an_application_in_another_namespace_is_read_there() -> None:
    """Argo CD writes NAMESPACE_NAME where its applications stand elsewhere."""
    server = Applications(SYNC)
    writer_of(server, seen(metadata={"annotations": {"argocd.argoproj.io/tracking-id": "team-a_llm:x"}}))
    assert server.asked == ["/apis/argoproj.io/v1alpha1/namespaces/team-a/applications/llm"]
