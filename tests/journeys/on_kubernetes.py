"""An example's incident with its service on a real control plane: the recorded words of a failure, a live Deployment."""

from agent.adapters.platform.rehearsal.scenario import load_scenario
from agent.app.catalogues import read_services
from agent.app.runtime_environment import RuntimeEnvironment, open_environment
from tests.contracts.kube_world import KubeWorld
from tests.journeys.conftest import ROOT
from tests.kube import rig

EXAMPLE = "gemma4-31b-l4-oom"


def begin(journey, cluster, *, platform=lambda world: world.platform, **how):
    """Begin the example with a Deployment on the only card of its cluster; its flags are those that fail.

    Args:
        journey: The fixture of that name.
        cluster: The cluster.
        platform: What the agent is given of the world that was made.
        how: More of the workload, as for ``KubeWorld``.
    """
    made = []

    def on_kubernetes(settings, clock):
        scenario = load_scenario(ROOT / "examples" / EXAMPLE / "scenario.toml")
        config, life = scenario.live.config, rig("kubelet").Life
        failing = list(config.args)
        cluster.life = lambda pod: life.OOM_KILLED if pod.spec.containers[0].args == failing else life.READY
        container = {"command": list(config.command)} if config.command else {}
        made.append(KubeWorld(cluster, scenario.service, config.args, spare=0, **({"container": container} | how)))
        logs = open_environment(settings, read_services(settings), clock).logs
        given = platform(made[0])
        return RuntimeEnvironment(platform_of=lambda name: given if name == scenario.service else None, logs=logs)

    return journey(EXAMPLE, environment=on_kubernetes), made[0]


def go_on(told, world, reached):
    """Let both times go by: the journey's in steps, the cluster's as it is."""

    def stepped():
        told.go(5, step=5)
        found = told.incidents()[0]
        return found if reached(found) else None

    return world.cluster.until(stepped, 120)
