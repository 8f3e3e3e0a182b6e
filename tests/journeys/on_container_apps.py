"""An example's incident with its service on a stand-in of ARM: the recorded rows of a failure, a live container app."""

from agent.adapters.platform.rehearsal.scenario import load_scenario
from agent.app.catalogues import read_services
from agent.app.runtime_environment import RuntimeEnvironment, open_environment
from tests.contracts.arm_world import ArmWorld
from tests.journeys.conftest import ROOT

EXAMPLE = "gemma4-12b-aca-a100-fp8-kv"


def world_of(clock, *, mode="Single", **how):
    """Return the example's app: its flags are those that fail, everything else comes up."""
    scenario = load_scenario(ROOT / "examples" / EXAMPLE / "scenario.toml")
    made = ArmWorld(
        scenario.service, scenario.live.config, bad=("--kv-cache-dtype", "fp8"), mode=mode, up=False, watch=clock, **how
    )
    failed = f"{scenario.service}--0000003"  # as the rows name it
    made.arm.rename_first(scenario.service, failed)
    return made


def begin(journey, *, platform=lambda world: world.open(), **how):
    """Begin the example with a container app in the place of the rehearsal; its logs stay the recorded ones."""
    made = []

    def on_container_apps(settings, clock):
        made.append(world_of(clock, **how))
        given = platform(made[0])
        logs = open_environment(settings, read_services(settings), clock).logs
        return RuntimeEnvironment(platform_of=lambda name: given if name == made[0].service else None, logs=logs)

    return journey(EXAMPLE, environment=on_container_apps), made[0]


def go_on(told, reached, *, limit_s=7200):
    """Let time go by until the incident is as wanted."""
    for _ in range(int(limit_s // 60)):
        told.go(60, step=60)
        found = told.incidents()[0]
        if reached(found):
            return found
    raise AssertionError(f"not reached: {found.phase} {found.ended_why}")
