"""S20: the manifests at a real API server, and an identity that may do what the agent's calls need, and nothing else."""

import re
import threading
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from agent.adapters.kubernetes.client import KubernetesApi, connect
from agent.adapters.kubernetes.lease import LeaderLease
from agent.app import cluster_access
from agent.app.stores import machine_clock
from agent.core.plan.action import SetFlag
from agent.core.service.cluster_rights import NODES, TOKENS, lease_rights, workload_rights
from agent.core.service.services import parse_services
from agent.errors import DependencyFailed, PolicyRefused
from agent.ports.platform import Order
from agent.settings import read_settings
from tests import kube
from tests.agent.adapters.kubernetes.test_token_review import made_for
from tests.journeys.test_cluster_monitor import Watching, diagnosed
from tests.leases import HELD

pytestmark = [pytest.mark.xdist_group("kube"), pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[a-z0-9.]+)/[a-z0-9]+)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<resource>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[a-z]+))?"
)
LEASE = lease_rights("sre-agent/sre-agent")
SET = "vllm-set"
STATEFUL = f"""
[[service]]
name = "{SET}"
platform = "kubernetes"
namespace = "llm"
workload = "statefulset/{SET}"
model = "google/gemma-3-27b-it"
accelerator = "nvidia-l4"
owner = "console"
"""
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
PLACES = ("llm", "sre-agent", "default", "kube-system")
OWN_REVIEWS = {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}  # anybody's, of themselves


def manifests(*, stateful=False):
    """Every object of the folder, in the order of the kustomization; the config map is what kustomize would make.

    With the rules for StatefulSets, which stand there in comments, where they are wanted.
    """
    wanted = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
    for name in wanted["resources"]:
        text = (FOLDER / name).read_text()
        yield from yaml.safe_load_all(re.sub("^  # ", "  ", text, flags=re.MULTILINE) if stateful else text)
    (made,) = wanted["configMapGenerator"]
    data = {file: (FOLDER / file).read_text() for file in made["files"]}
    head = {"name": made["name"], "namespace": made["namespace"]}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": head, "data": data}


def collection(body):
    """Return the path that an object is posted to."""
    base = "/api/v1" if body["apiVersion"] == "v1" else f"/apis/{body['apiVersion']}"
    space = body["metadata"].get("namespace")
    kind = body["kind"].lower()
    plural = kind[:-1] + "ies" if kind.endswith("y") else f"{kind}s"
    return base + (f"/namespaces/{space}" if space else "") + f"/{plural}"


class Installed:
    """The manifests in a real cluster, for the Deployment that they name and a StatefulSet in its namespace."""

    def __init__(self, plane):
        self.plane = plane
        self.api = KubernetesApi(lambda: connect(kubeconfig=str(plane.kubeconfig)))
        self.api.create("/api/v1/namespaces", {"metadata": {"name": "llm"}})
        self.bodies = list(manifests(stateful=True))
        for body in self.bodies:
            self.api.create(collection(body), body)
        self.kubeconfig = plane.service_account_kubeconfig("sre-agent", "sre-agent")
        self.own = KubernetesApi(lambda: connect(kubeconfig=str(self.kubeconfig)))
        self.services = parse_services((FOLDER / "services.toml").read_text() + STATEFUL)

    def close(self):
        for body in reversed(self.bodies):
            with suppress(Exception):
                self.plane.request("DELETE", f"{collection(body)}/{body['metadata']['name']}")
        self.plane.request("DELETE", "/api/v1/namespaces/llm")

    def allowed(self, verb, group, resource, namespace="", name=""):
        """Whether the agent's identity may, in the API server's own words, asked by the administrator."""
        kind, _, sub = resource.partition("/")
        asked = {
            "verb": verb,
            "group": group,
            "resource": kind,
            "subresource": sub,
            "namespace": namespace,
            "name": name,
        }
        who = {"user": "system:serviceaccount:sre-agent:sre-agent",
               "groups": ["system:serviceaccounts", "system:serviceaccounts:sre-agent", "system:authenticated"]}  # fmt: skip
        spec = {"resourceAttributes": asked} | who
        answer = self.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
        return answer["status"]["allowed"]


@pytest.fixture(scope="module")
def installed(kube_plane):
    made = Installed(kube_plane)
    yield made
    made.close()


def needed(services):
    return {right[:5] for right in (*workload_rights(services.services), *NODES, *TOKENS, *LEASE)}


def test_the_manifests_are_admitted_as_they_stand(kube_plane):
    """A server-side dry run of every object: names, fields and values are the API server's own to judge."""
    api = KubernetesApi(lambda: connect(kubeconfig=str(kube_plane.kubeconfig)))
    for body in manifests():
        if "namespace" not in body["metadata"]:
            assert api.create(collection(body), body, dry_run=True)["kind"] == body["kind"]
    assert {"Deployment", "Service", "NetworkPolicy", "PersistentVolumeClaim"} <= {b["kind"] for b in manifests()}


def test_without_the_rules_in_comments_the_role_is_that_of_a_deployment():
    """A right that only StatefulSets need is not granted to who watches none."""
    (role,) = [b for b in manifests() if b["kind"] == "Role" and b["metadata"]["namespace"] == "llm"]
    granted = {
        (verb, group, resource, "llm", name)
        for rule in role["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
    }
    services = parse_services((FOLDER / "services.toml").read_text())
    assert granted == {right[:5] for right in workload_rights(services.services)}


@pytest.mark.parametrize("place", PLACES)
def test_the_rules_that_the_server_lists_to_the_agent_are_what_its_calls_need(installed, place):
    """In each namespace, what is granted cluster-wide included; whether each rule is applied is tried below, one by one."""
    review = {"spec": {"namespace": place}}
    listed = installed.own.create("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review)["status"]
    found = {
        (verb, group, resource, name)
        for rule in listed["resourceRules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        if resource not in OWN_REVIEWS
    }
    assert found == {(*right[:3], right[4]) for right in needed(installed.services) if right[3] in {"", place}}


def test_every_right_is_granted_and_none_besides(installed):
    """All kinds that the server knows, all verbs, in the watched namespace, our own, another one and the cluster."""
    granted = needed(installed.services)
    kinds = [("", row["name"], row["namespaced"]) for row in installed.api.get("/api/v1")["resources"]]
    for group in installed.api.get("/apis")["groups"]:
        version = group["preferredVersion"]["groupVersion"]
        rows = installed.api.get(f"/apis/{version}")["resources"]
        kinds += [(group["name"], row["name"], row["namespaced"]) for row in rows]
    found = set()
    for group, resource, namespaced in kinds:
        places = PLACES if namespaced else ("",)
        for verb in VERBS:
            for place in places:
                for name in ("", "vllm", SET, "sre-agent", "other"):
                    if resource not in OWN_REVIEWS and installed.allowed(verb, group, resource, place, name):
                        found.add((verb, group, resource, place, name))
    unnamed = {right for right in granted if not right[4]}
    assert {right for right in found if not right[4]} == unnamed
    named = {right for right in found if right[4] and (*right[:4], "") not in unnamed}
    assert named == {right for right in granted if right[4]}


@pytest.fixture
def calls(monkeypatch):
    """What is asked of API servers: verb, group, resource, namespace and name, as RBAC sees a request."""
    seen, plain = set(), KubernetesApi.stream

    def recorded(self, method, path, **how):
        found = PATH.fullmatch(path)
        query = how.get("query") or {}
        watch, fields = query.get("watch") == "true", query.get("fieldSelector", "")
        verb = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}.get(method)
        verb = verb or ("watch" if watch else "get" if found["name"] else "list")
        name = fields.removeprefix("metadata.name=") if fields.startswith("metadata.name=") else found["name"] or ""
        kind = found["resource"] + (f"/{found['sub']}" if found["sub"] else "")
        seen.add((self, verb, found["group"] or "", kind, found["namespace"] or "", name))
        return plain(self, method, path, **how)

    monkeypatch.setattr(KubernetesApi, "stream", recorded)
    return seen


def make_workloads(api):
    """Create the Deployment and the StatefulSet, both with a length that ends in an out-of-memory kill here."""
    base, args = "/apis/apps/v1/namespaces/llm", ["--max-model-len=65536"]
    api.create(f"{base}/deployments", kube.workload("vllm", args))
    api.create(f"{base}/statefulsets", kube.workload(SET, args, serviceName=SET))


def change(app, service, incident):
    """Read, check, change and find a workload, as the stages do."""
    platform = app.environment.platform_of(service)
    live = platform.describe(service)
    order = Order(service=service, incident=incident, effect_key="e-1", revision=f"{service}-e1", etag=live.etag,
                  actions=(SetFlag(name="max-model-len", value="4096"),), lease_end=HELD)  # fmt: skip
    platform.validate(order)
    platform.apply(order)
    assert platform.find(service, "e-1") is not None


def test_the_agent_works_with_that_role_and_asks_for_nothing_else(installed, calls, tmp_path, kube_plane):
    """A kill for memory noticed, its log read, Deployment and StatefulSet changed, Lease held, token reviewed."""
    kubelet = kube.rig("kubelet")
    kubelet.make_node(installed.api.client, "node-of-llm", gpus=2, memory="512Gi")
    cluster = type("Place", (), {"namespace": "llm", "plane": kube_plane, "api": installed.api})()
    watch = Watching(cluster, tmp_path / "w", kubeconfig=installed.kubeconfig, services=installed.services)
    pods = "/api/v1/namespaces/llm/pods"
    try:
        account = "/api/v1/namespaces/llm/serviceaccounts/default"
        kube.Cluster.until(cluster, lambda: (installed.api.find(account) or {}).get("secrets"))
        make_workloads(installed.api)
        with kubelet.StandInKubelet(installed.api.client, lambda _pod: kubelet.Life.OOM_KILLED):
            incident = watch.until(lambda i: i.service == "vllm" and diagnosed("host_oom")(i))
            kube.Cluster.until(cluster, lambda: installed.api.find(f"{pods}/{SET}-0"))
        stuck = installed.api.get(f"{pods}/{SET}-0")["metadata"]["uid"]
        change(watch.app, "vllm", incident.id)
        change(watch.app, SET, incident.id)
        left = (installed.api.find(f"{pods}/{SET}-0") or {"metadata": {}})["metadata"]
        assert left.get("uid") != stuck or "deletionTimestamp" in left
        logs, until = watch.app.environment.logs, machine_clock().now()
        with suppress(DependencyFailed):  # the way to it is what matters here: no kubelet is behind this node
            logs.instance_log("vllm", revision=incident.revision, instance=None, until=until)
        review = watch.app.environment.token_review
        class_ = type("Own", (), {"namespace": "sre-agent", "api": installed.api})()
        assert review.username(made_for(class_, "sre-agent"), audience="sre-agent")
        lease = LeaderLease(installed.own, namespace="sre-agent", name="sre-agent", holder="a", clock=machine_clock())
        assert lease.hold(threading.Event())
        lease.release()
    finally:
        watch.stop()
        installed.plane.request("DELETE", "/api/v1/nodes/node-of-llm")
    admin = installed.api
    used = {row[1:] for row in calls if row[0] is not admin}
    bound = {right for right in needed(installed.services) if right[4]}
    named = {(*row[:4], "") for row in bound}
    shown = {row if (*row[:4], "") in named and row in bound else (*row[:4], "") for row in used}
    assert shown == needed(installed.services)


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("DELETE", "/apis/apps/v1/namespaces/llm/deployments/vllm"),
        ("GET", "/apis/apps/v1/namespaces/llm/deployments/other"),
        ("GET", "/apis/apps/v1/namespaces/llm/deployments"),
        ("GET", "/api/v1/namespaces/llm/secrets"),
        ("GET", "/api/v1/namespaces/sre-agent/secrets"),
        ("GET", "/api/v1/namespaces/kube-system/pods"),
        ("GET", "/api/v1/pods"),
        ("POST", "/api/v1/namespaces/llm/pods"),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
    ],
)
def test_what_is_not_needed_is_refused(installed, verb, path):
    body = {} if verb == "POST" else None
    with pytest.raises(PolicyRefused, match="forbidden"), installed.own.stream(verb, path, body=body) as response:
        response.read()


MISSING = {
    "deployments": (
        ["get", "list", "watch"],
        "patch deployments.apps/vllm in namespace llm",
        "'vllm' cannot be changed, only read",
    ),
    "controllerrevisions": (
        ["list"],
        "get controllerrevisions.apps in namespace llm",
        "'vllm-set' cannot be read",
    ),
    "leases": (
        ["create", "get"],
        "patch leases.coordination.k8s.io/sre-agent in namespace sre-agent",
        "no replica can lead: sre-agent up waits for ever",
    ),
}


@pytest.mark.parametrize("kind", MISSING)
def test_the_doctor_names_the_verb_that_is_missing(installed, monkeypatch, kind):
    """With the Role as it is all is well; without one verb the doctor says which, and what does not work."""
    verbs, says, why = MISSING[kind]
    settings = read_settings({"LEASE": "sre-agent/sre-agent"}, platform="kubernetes")
    monkeypatch.setattr(cluster_access, "api_of", lambda _settings: lambda _service: installed.own)
    monkeypatch.setattr(cluster_access, "own_api", lambda _settings: installed.own)
    place = "sre-agent" if kind == "leases" else "llm"
    role = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{place}/roles/sre-agent"
    whole = installed.api.get(role)["rules"]
    less = [rule | ({"verbs": verbs} if rule["resources"] == [kind] else {}) for rule in whole]

    def missing():
        return cluster_access.missing_rights(settings, installed.services)

    seen_within(lambda: missing() == ())
    installed.api.patch(role, [{"op": "replace", "path": "/rules", "value": less}])
    try:
        (right,) = seen_within(missing)
    finally:
        installed.api.patch(role, [{"op": "replace", "path": "/rules", "value": whole}])
    assert (right.says, right.why) == (says, why)


def seen_within(look):
    """The API server's authorizer follows a Role after a moment."""
    end = threading.Event()
    for _ in range(100):
        if seen := look():
            return seen
        end.wait(0.1)
    raise AssertionError(look())
