"""What a real API server refuses, loses or finds replaced: said in its words, and nothing is done twice or lost."""

import base64
import json
import ssl
from contextlib import suppress

import pytest

from agent.adapters.kubernetes.client import KubernetesApi, connect
from agent.core.incident.phase import Phase
from agent.core.plan.action import ForPerson, SetFlag, SetStrategy
from agent.core.plan.plan import Rollout
from agent.core.service.serving import Strategy
from agent.errors import DependencyFailed, InputRejected, PolicyRefused
from agent.ports.platform import Order
from tests.contracts.kube_world import KubeWorld
from tests.journeys.on_kubernetes import begin, go_on
from tests.kube import Cable
from tests.leases import HELD
from tests.loopback import Loopback

pytestmark = pytest.mark.xdist_group("kube")
ARGS = ("serve", "google/gemma-3-27b-it", "--max-model-len=8192")
SHORTER = SetFlag(name="max-model-len", value="4096")
POLICY = "vllm.policy.example.com"


class Admission:
    """An admission webhook of one namespace, on loopback behind TLS, as the API server asks it.

    One that patches cannot be tried here: this build of 1.20 ends when it writes such a patch to its audit log.

    Args:
        plane: Its API server's certificate is valid for this machine, so the webhook uses the same.
        cluster: Changes of its Deployments are asked about.
        answer: What it says to a request, beside its uid.
    """

    def __init__(self, plane, cluster, answer):
        def reply(request):
            review = request.json()
            return 200, review | {"response": {"uid": review["request"]["uid"]} | answer}

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(plane.certificate, plane.certificate.with_suffix(".key"))
        self._server = Loopback(reply, methods=["POST"], tls=context)
        self._api, label = cluster.api, {"admission": cluster.namespace}
        cluster.api.patch(
            f"/api/v1/namespaces/{cluster.namespace}", [{"op": "add", "path": "/metadata/labels", "value": label}]
        )
        self._path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        certificate = base64.b64encode(plane.certificate.read_bytes()).decode()
        hook = {
            "name": POLICY,
            "clientConfig": {"url": f"{self._server.url}/", "caBundle": certificate},
            "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"],
                       "resources": ["deployments"]}],
            "namespaceSelector": {"matchLabels": label},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail",
        }  # fmt: skip
        made = self._api.create(self._path, {"metadata": {"name": cluster.namespace}, "webhooks": [hook]})
        self._path, self._uid = f"{self._path}/{cluster.namespace}", made["metadata"]["uid"]

    def close(self):
        self._api.delete(self._path, uid=self._uid)
        self._server.close()


DENIES = {"allowed": False, "status": {"code": 403, "message": "flags are changed by the platform team only"}}


@pytest.fixture
def closing():
    """Closes what it is given, the last first."""
    made = []

    def keep(one):
        made.append(one)
        return one

    yield keep
    for one in reversed(made):
        one.close()


def order(world, *actions):
    live = world.platform.describe("gemma")
    return Order(
        service="gemma",
        incident="i",
        effect_key="k1",
        revision="gemma-sre-k1",
        etag=live.etag,
        actions=actions,
        lease_end=HELD,
    )


def test_a_webhook_that_denies_refuses_the_approved_plan_in_its_words(journey, kube_cluster, kube_plane, closing):
    """Nothing was changed, the same plan does not come again, and the incident goes on."""
    cluster = kube_cluster()
    told, world = begin(journey, cluster)
    closing(world)
    spec = world.body()["spec"]
    asked = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    closing(Admission(kube_plane, cluster, DENIES))
    world.cluster.until(lambda: denied(world))
    told.answer(asked.plan.id)
    after = go_on(told, world, lambda i: i.ended or i.plans_made > asked.plans_made)
    said = [e.what for e in told.installation.store.timeline(after.id) if e.phase is Phase.REFUSED]
    assert f'admission webhook "{POLICY}" denied the request: {DENIES["status"]["message"]}' in said[0]
    assert "ask the owner of that admission webhook" in said[0]
    assert world.body()["spec"] == spec
    assert after.plan.actions != asked.plan.actions


def denied(world):
    steps = [{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}]
    try:
        world.cluster.api.patch(world.path, steps, dry_run=True)
    except PolicyRefused:
        return True
    return False


def test_what_the_server_would_store_beside_the_plan_is_found_before_anything_is_stored(kube_cluster, closing):
    """Here a default that completes the strategy; what an admission webhook rewrites looks the same from outside."""
    world = closing(KubeWorld(kube_cluster(), "gemma", ARGS, spare=0))
    half = SetStrategy(strategy=Strategy(kind="RollingUpdate", max_surge="0"))
    for call in (world.platform.validate, world.platform.apply):
        with pytest.raises(InputRejected, match="would store strategy RollingUpdate maxSurge 0 maxUnavailable 25% in"):
            call(order(world, half))
    assert world.body()["metadata"]["generation"] == 1


def test_without_the_right_to_delete_a_stuck_pod_nothing_is_changed(kube_cluster, closing):
    """A StatefulSet would wait for that pod for ever; the refusal comes before the change and not after it."""
    cluster = kube_cluster()
    world = closing(KubeWorld(cluster, "gemma", (*ARGS[:2], "--max-model-len=65536"), spare=0, kind="statefulsets"))
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{cluster.namespace}"
    may = [
        {"apiGroups": ["apps"], "resources": ["statefulsets", "controllerrevisions"], "verbs": ["get", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["list"]},
    ]
    cluster.api.create(f"{rbac}/roles", {"metadata": {"name": "half"}, "rules": may})
    to = {"kind": "User", "name": "repairer", "apiGroup": "rbac.authorization.k8s.io"}
    of = {"kind": "Role", "name": "half", "apiGroup": "rbac.authorization.k8s.io"}
    cluster.api.create(f"{rbac}/rolebindings", {"metadata": {"name": "half"}, "subjects": [to], "roleRef": of})
    with pytest.raises(PolicyRefused, match='cannot delete resource "pods"'):
        world.open("repairer").apply(order(world, SHORTER))
    assert world.body()["metadata"]["generation"] == 1


def test_a_field_that_may_not_change_is_told_in_the_servers_words(kube_cluster, closing):
    world = closing(KubeWorld(kube_cluster(), "gemma", ARGS, spare=0))
    with pytest.raises(InputRejected, match="field is immutable"):
        world.cluster.api.patch(
            world.path, [{"op": "replace", "path": "/spec/selector/matchLabels", "value": {"app": "other"}}]
        )


def without(told):
    """Let time go by while the API server is away; the tick says so each time and is called again."""
    for _ in range(4):
        with suppress(DependencyFailed):
            told.go(5, step=5)


def test_while_the_api_server_is_away_the_change_waits_and_is_made_once(
    journey, kube_cluster, kube_plane, closing, tmp_path
):
    """Gone after the approval, gone again while the rollout runs; both times it goes on where it stood."""
    cable = closing(Cable(kube_plane.ports["kube-apiserver"]))
    through = cable.api(kube_plane, tmp_path / "kubeconfig")
    told, world = begin(journey, kube_cluster(), platform=lambda world: world.open(api=through))
    closing(world)
    asked = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    cable.cut()
    told.answer(asked.plan.id)
    without(told)
    assert told.incidents()[0].phase is Phase.APPROVED
    cable.mend()
    go_on(told, world, lambda i: i.execution is not None and i.execution.effects[0].operation)
    changed = world.body()["metadata"]["generation"]
    cable.cut()
    without(told)
    cable.mend()
    with world.cluster.play():
        done = go_on(told, world, lambda i: i.ended)
    assert done.phase is Phase.RESOLVED, done.ended_why
    assert world.body()["metadata"]["generation"] == changed == asked.plan.target.generation + 1


def test_a_deployment_made_again_under_our_change_goes_to_a_person(journey, kube_cluster, closing):
    """It bears no stamp and another uid: nothing is put back over it, and nobody says that the change was never made."""
    told, world = begin(journey, kube_cluster())
    closing(world)
    asked = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    told.answer(asked.plan.id)
    go_on(told, world, lambda i: i.execution is not None and i.execution.effects[0].operation)
    body = world.body()
    world.cluster.api.delete(world.path, uid=body["metadata"]["uid"])
    world.wait()
    world.cluster.deploy(world.service, list(ARGS))
    world.wait()
    spec = world.body()["spec"]
    done = go_on(told, world, lambda i: i.ended)
    assert done.phase is Phase.ESCALATED
    assert "deleted and made again" in done.ended_why
    assert world.body()["spec"] == spec


def expired(world):
    """An adapter whose token the API server does not know any more."""
    config = json.loads(world.cluster.plane.kubeconfig.read_text())
    config["users"][0]["user"]["token"] = "expired"
    path = world.cluster.plane.kubeconfig.parent / f"{world.cluster.namespace}.expired"
    path.write_text(json.dumps(config))
    return world.open(api=KubernetesApi(lambda: connect(kubeconfig=str(path))))


def elsewhere(**where):
    return lambda world: world.open(workload=world.workload.with_(**where))


UNREADABLE = {
    "an expired token": (expired, "log in to the cluster again"),
    "no such container": (elsewhere(container="tgi"), "it has no container 'tgi'; its containers are vllm"),
    "no such namespace": (elsewhere(namespace="nowhere"), "not found. Hint: look for its namespace"),
    "no right": (lambda world: world.open("repairer"), 'User "repairer" cannot get resource "deployments"'),
}


def test_what_cannot_be_read_becomes_a_task_that_says_why(journey, kube_cluster, closing):
    """Each with a reason that says whom to ask; then the plan is a person's."""
    told, world = begin(journey, kube_cluster(), platform=expired)
    closing(world)
    for name, (make, says) in UNREADABLE.items():
        with pytest.raises((InputRejected, PolicyRefused)) as refused:
            make(world).describe(world.service)
        assert says in str(refused.value), name
    asked = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    assert asked.plan.rollout is Rollout.BY_PERSON
    assert isinstance(asked.plan.actions[0], ForPerson)
    assert any("Unauthorized" in note for note in asked.plan.notes)
