"""What every test may use: Google's emulators, where they are installed."""

import gc
import hashlib
import os
import signal
from collections import Counter

import hypothesis
import pytest
import structlog

from tests import firestore_emulator as firestore
from tests import kube, rigs
from tests import pubsub_emulator as pubsub
from tests.counts import tries
from tests.outside import absent
from tests.scheduling import FilesAndGroups, arranged
from tests.temporary import in_memory

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test asks the model hub; those that need one start their own

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a run in the background; what it starts must hear Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # a run under nohup; what it starts must hear its terminal close
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

if folder := in_memory():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", folder)

# Whether an example takes long says how busy the machine is, and nothing about what it tries.
hypothesis.settings.register_profile(
    "any machine",
    max_examples=tries(25, ci=100, soak=1_000),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("any machine")


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


PLANES = pytest.StashKey[list]()


@pytest.fixture(scope="session")
def kube_plane(request, tmp_path_factory):
    """A real Kubernetes control plane, one for the session; all tests that use it run on one worker in a row."""
    running = kube.start_plane(tmp_path_factory.mktemp("kube"), users=("repairer",))
    request.config.stash[PLANES] = [running]
    yield running
    end_planes(request.config)


def end_planes(config):
    planes = config.stash.get(PLANES, [])
    while planes:
        kube.rig("control_plane").stop(planes.pop().directory)


def pytest_addoption(parser):
    parser.addoption("--sample", action="store_true", help="run a sample of the cases of a test that has many")


LEFT = pytest.StashKey[Counter]()  # to CI=true, by rig, and cases of long tables


@pytest.hookimpl(tryfirst=True)  # before -m looks at the marks
def pytest_collection_modifyitems(config, items):
    for item in items:
        if "kube_plane" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("kube"), append=False)
            item.add_marker("kube")
    if rigs.takes_journeys_alone(config):
        items[:], config.stash[LEFT] = rigs.split(items)
    elif rigs.takes_samples(config):
        collected = len(items)
        items[:] = rigs.sample_of_tables(items)
        config.stash[LEFT] = Counter({rigs.CASES: collected - len(items)})
    if config.getoption("loadgroup", default=False):
        items[:] = arranged(items)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["journeys_alone"] = rigs.takes_journeys_alone(node.config)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_to_ci"] = dict(session.config.stash.get(LEFT, {}))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    left = Counter(getattr(node, "workeroutput", {}).get("left_to_ci", {}))
    node.config.stash[LEFT] = node.config.stash.get(LEFT, Counter()) | left  # each worker left the same out


def pytest_terminal_summary(terminalreporter, config):
    if left := config.stash.get(LEFT, Counter()):
        terminalreporter.write_line(rigs.said(left))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return FilesAndGroups(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item, nextitem):
    """Undo what a test bound the log to, and end the control plane behind its group of tests.

    A command binds the log to what pytest captures just then. An idle control plane takes a tenth of a core from all the others.
    """
    try:
        return (yield)
    finally:
        plain_log()
        grouped = getattr(item.config.option, "loadgroup", False)  # then the group runs on one worker in a row
        if grouped and _group(item) == "kube" and _group(nextitem) != "kube":
            end_planes(item.config)


def _group(item):
    mark = item.get_closest_marker("xdist_group") if item is not None else None
    return mark.args[0] if mark is not None else None


PLAIN = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)


def plain_log():
    """Write what is logged in a line and a plain traceback; the default draws every value of every frame, in two seconds."""
    structlog.reset_defaults()
    structlog.configure([*structlog.get_config()["processors"][:-1], PLAIN])


def pytest_sessionstart():
    """Whatever is imported stays; to look through it for garbage again and again takes a fifth of a long run."""
    plain_log()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


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
