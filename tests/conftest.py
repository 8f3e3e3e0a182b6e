"""What every test may use: Google's emulators, where they are installed."""

import hashlib
import os

import pytest

from tests import firestore_emulator as firestore
from tests import kube
from tests import pubsub_emulator as pubsub
from tests.outside import absent

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test asks the model hub; those that need one start their own


@pytest.fixture(scope="session")
def pubsub_emulator(tmp_path_factory):
    """Google's Pub/Sub emulator, one for the session; each test takes a project of its own."""
    try:
        running = pubsub.Emulator(tmp_path_factory.mktemp("pubsub") / "emulator.log")
    except pubsub.Missing as missing:
        absent(str(missing))
    yield running
    running.stop()


@pytest.fixture
def pubsub_project(pubsub_emulator, request):
    """A project of its own: topics and subscriptions of other tests are not in it."""
    return f"p-{hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:12]}"


@pytest.fixture(scope="session")
def firestore_emulator(tmp_path_factory):
    """Google's Firestore emulator, one for the session; each test takes a project of its own."""
    try:
        running = firestore.Emulator(tmp_path_factory.mktemp("firestore") / "emulator.log")
    except firestore.Missing as missing:
        absent(str(missing))
    yield running
    running.stop()


@pytest.fixture
def firestore_project(firestore_emulator, request):
    """A project of its own: documents of other tests are not in it."""
    return f"p-{hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:12]}"


@pytest.fixture(scope="session")
def kube_plane(tmp_path_factory):
    """A real Kubernetes control plane, one for the session: tests that use it are of the xdist group ``kube``."""
    plane = kube.start_plane(tmp_path_factory.mktemp("kube"), users=("repairer",))
    yield plane
    kube.rig("control_plane").stop(plane.directory)


@pytest.fixture
def kube_cluster(kube_plane, request):
    """Makes a namespace with a node of its own."""
    made = []

    def make(**how):
        made.append(kube.Cluster(kube_plane, f"{request.node.nodeid} {len(made)}", **how))
        return made[-1]

    yield make
    for cluster in made:
        cluster.close()
