"""The manifests by rules of our own: the Pod Security Standard, stable versions, and one name for one thing."""

import copy
import re

import pytest
import yaml

from agent.core.service.services import parse_services, workload_ref
from agent.settings import VARIABLES, read_settings

STABLE_SINCE_1_21 = {
    "Namespace": "v1",
    "ServiceAccount": "v1",
    "ConfigMap": "v1",
    "PersistentVolumeClaim": "v1",
    "Service": "v1",
    "Deployment": "apps/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "Role": "rbac.authorization.k8s.io/v1",
    "RoleBinding": "rbac.authorization.k8s.io/v1",
    "ClusterRole": "rbac.authorization.k8s.io/v1",
    "ClusterRoleBinding": "rbac.authorization.k8s.io/v1",
}
"""Served unchanged by every release from 1.21 on (https://kubernetes.io/docs/reference/using-api/deprecation-guide/,
2026-11-22). Their fields are judged by the API server of the tests, which is 1.20, and by `make manifests`."""

VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}


@pytest.fixture(scope="module")
def folder(root):
    return root / "deploy" / "kubernetes"


@pytest.fixture(scope="module")
def objects(folder):
    """Every object of the kustomization; the rules in comments are taken in where ``all_rules`` reads them."""
    names = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    return [body for name in names for body in yaml.safe_load_all((folder / name).read_text())]


def one(objects, kind, name="sre-agent", namespace=None):
    (found,) = [
        b
        for b in objects
        if b["kind"] == kind
        and b["metadata"]["name"] == name
        and (namespace is None or b["metadata"].get("namespace") == namespace)
    ]
    return found


def test_every_version_is_stable_since_1_21(objects, folder):
    assert {body["kind"]: body["apiVersion"] for body in objects} == {
        kind: version for kind, version in STABLE_SINCE_1_21.items() if kind != "ConfigMap"
    }
    listed = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"}
    assert listed == set(yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"])


def violations(pod):
    """What of a pod the Pod Security Standard "restricted" forbids (v1.35, every field of it).

    https://kubernetes.io/docs/concepts/security/pod-security-standards/, read on 2026-11-22.
    """
    found = [f"spec.{key}" for key in ("hostNetwork", "hostPID", "hostIPC") if pod.get(key)]
    whole = pod.get("securityContext") or {}
    found += [f"volume {v['name']}" for v in pod.get("volumes", ()) if set(v) - {"name"} - VOLUMES]
    found += ["sysctls"] if whole.get("sysctls") else []
    containers = [c for key in ("containers", "initContainers", "ephemeralContainers") for c in pod.get(key, ())]
    for container in containers:
        own, name = container.get("securityContext") or {}, container["name"]
        checks = {
            "privileged": own.get("privileged"),
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is not False,
            "runAsNonRoot": (own.get("runAsNonRoot", whole.get("runAsNonRoot"))) is not True,
            "runAsUser": 0 in {own.get("runAsUser"), whole.get("runAsUser")},
            "drop": "ALL" not in (own.get("capabilities") or {}).get("drop", ()),
            "add": set((own.get("capabilities") or {}).get("add", ())) - {"NET_BIND_SERVICE"},
            "seccomp": (own.get("seccompProfile") or whole.get("seccompProfile") or {}).get("type")
            not in {"RuntimeDefault", "Localhost"},
            "procMount": own.get("procMount", "Default") != "Default",
            "seLinux": any((c.get("seLinuxOptions") or {}).keys() & {"user", "role"} for c in (own, whole)),
            "appArmor": any((c.get("appArmorProfile") or {}).get("type") == "Unconfined" for c in (own, whole)),
            "windows": any((c.get("windowsOptions") or {}).get("hostProcess") for c in (own, whole)),
            "hostPort": any(port.get("hostPort") for port in container.get("ports", ())),
            "probe host": any((container.get(p) or {}).get("httpGet", {}).get("host") for p in PROBES),
        }
        found += [f"{name}: {rule}" for rule, broken in checks.items() if broken]
    return found


PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


@pytest.fixture
def pod(objects):
    return copy.deepcopy(one(objects, "Deployment")["spec"]["template"]["spec"])


def test_the_pod_is_restricted_and_its_namespace_enforces_that(objects, pod):
    assert violations(pod) == []
    assert one(objects, "Namespace")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def put(pod, path, value):
    """Set a field; ``0`` in the path is the first container, None as value takes the field away."""
    *way, last = path.split(".")
    here = pod
    for step in way:
        here = here[0] if step == "0" else here.setdefault(step, {})
    if value is None:
        here.pop(last)
    else:
        here[last] = value


BROKEN = {
    "hostNetwork": True,
    "hostPID": True,
    "hostIPC": True,
    "securityContext.sysctls": [{"name": "kernel.msgmax", "value": "1"}],
    "securityContext.runAsNonRoot": None,
    "securityContext.runAsUser": 0,
    "securityContext.seccompProfile": None,
    "securityContext.seLinuxOptions": {"role": "x"},
    "containers.0.securityContext.privileged": True,
    "containers.0.securityContext.allowPrivilegeEscalation": None,
    "containers.0.securityContext.runAsNonRoot": False,
    "containers.0.securityContext.capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]},
    "containers.0.securityContext.procMount": "Unmasked",
    "containers.0.securityContext.appArmorProfile": {"type": "Unconfined"},
    "containers.0.securityContext.windowsOptions": {"hostProcess": True},
    "containers.0.ports": [{"containerPort": 8080, "hostPort": 8080}],
    "containers.0.livenessProbe.httpGet.host": "10.0.0.1",
    "volumes": [{"name": "state", "hostPath": {"path": "/"}}],
}


@pytest.mark.parametrize("path", BROKEN)
def test_each_field_of_the_standard_is_looked_at(pod, path):
    """The check itself can fail, in each of its rules."""
    put(pod, path, BROKEN[path])
    assert len(violations(pod)) == 1


def test_what_is_more_than_the_standard_wants(pod):
    """The file system is read-only, nothing of the cluster's services stands in the environment."""
    (container,) = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["enableServiceLinks"] is False
    assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
    assert "memory" in container["resources"]["limits"]


def test_the_environment_is_settings_that_are_read(pod):
    """Every variable is a setting, and all of them together are valid, but for the files of the config map."""
    (container,) = pod["containers"]
    environ = {row["name"]: row["value"] for row in container["env"]}
    assert environ.keys() <= VARIABLES.keys()
    files = {name for name in ("SERVICES", "POLICY") if environ[name].startswith("/etc/sre-agent/")}
    settings = read_settings({name: said for name, said in environ.items() if name not in files})
    assert (settings.platform, settings.bind, settings.lease) == ("kubernetes", "0.0.0.0", "sre-agent/sre-agent")
    mounts = {row["mountPath"] for row in container["volumeMounts"]}
    assert {"/etc/sre-agent", str(settings.state), "/tmp"} == mounts


def test_one_namespace_and_one_workload_are_named_everywhere(objects, folder):
    """services.toml, the Role and the network policy speak of the same."""
    (service,) = parse_services((folder / "services.toml").read_text()).services
    at = workload_ref(service)
    role = one(objects, "Role", namespace=at.namespace)
    (rule,) = [rule for rule in role["rules"] if f"{at.kind}s" in rule["resources"]]
    assert rule["resourceNames"] == [at.name]
    policy = one(objects, "NetworkPolicy")["spec"]
    (peer,) = [peer for rule in policy["egress"] for peer in rule.get("to", ())]
    assert peer["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": at.namespace}


def with_rules_in_comments(text):
    """Take in what stands in comments, in place of what it replaces."""
    text = text.replace("  ingress: []\n", "")
    return re.sub("^  # ", "  ", text, flags=re.MULTILINE)


def test_the_ingress_rules_in_comments_let_in_the_port_alone(objects, folder):
    """Uncommented as they stand, they are valid, name only namespaces, and open no other port."""
    assert one(objects, "NetworkPolicy")["spec"]["ingress"] == []
    bodies = list(yaml.safe_load_all(with_rules_in_comments((folder / "agent.yaml").read_text())))
    (rule,) = one(bodies, "NetworkPolicy")["spec"]["ingress"]
    assert all(list(peer) == ["namespaceSelector"] for peer in rule["from"])
    (container,) = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert [row["port"] for row in rule["ports"]] == [row["containerPort"] for row in container["ports"]]
