"""A service on EC2 from its alarm on: EventBridge's event, the unit's own journal, the change by Systems Manager."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent.adapters.platform.rehearsal.scenario import load_scenario
from agent.app import build_app_in_memory
from agent.app.catalogues import read_services
from agent.app.ec2_environment import open_ec2
from agent.app.runtime_environment import RuntimeEnvironment
from agent.core.intake.signal import LIVE
from agent.entrypoints.cli.analysis import SteppedClock
from agent.ports.bus import Message, Topic
from agent.settings import read_settings
from tests.contracts.ec2_world import CONTAINER, REGION, UNIT, Ec2World, sdk
from tests.journeys.conftest import ROOT, Journey

EXAMPLE = ROOT / "examples" / "vllm-cpu-kv-cache-too-small"
NAME = "fatkv-llama-cpu"
SERVICES = """[[service]]
name = "{name}"
platform = "ec2"
location = "{region}"
instance = "{instance}"
{runs}
model = "local/fatkv-llama"
checkpoint = "/srv/models/fatkv-llama"
mounts = {{ "/srv/models" = "gs://example-models" }}
accelerator = "cpu"
vllm = "0.32.0"
owner = "console"

[service.needs]
context = 16384
users = 1
"""


def begin(folder: Path, *, longest: str = "32640", bare: bool = False) -> tuple[Journey, Ec2World]:
    """Begin with a unit that fails as it was recorded, on a machine on which contexts up to a length start.

    Args:
        folder: For all of it.
        longest: The longest context that starts.
        bare: Whether a container that no unit starts runs the server.
    """
    config = load_scenario(EXAMPLE / "scenario.toml").live.config
    args = config.args[: config.args.index("--port")]
    recorded = {"FAKE_FITS_LEN": longest, "FAKE_KV_LOG": str(EXAMPLE / "instance.log")}
    world = Ec2World(folder / "instance", NAME, config.with_(args=args), env=recorded, gpu="", bare=bare)
    return app_of(folder, world), world


def app_of(folder: Path, world: Ec2World, *, session: Any = sdk, alarms: bool = True) -> Journey:
    """Return the agent over that instance; its alarm has been posted."""
    services = folder / "services.toml"
    runs = f'container = "{CONTAINER}"' if world.docker is not None else f'unit = "{UNIT}"'
    services.write_text(SERVICES.format(name=NAME, region=REGION, instance=world.instance, runs=runs))
    settings = read_settings({"SERVICES": str(services), "VERIFY_WINDOW_S": "60"}, platform="ec2")
    clock = SteppedClock(datetime.now(UTC))

    opened = open_ec2(settings, read_services(settings), clock, session=session, commands=world.commands)
    environment = RuntimeEnvironment(platform_of=lambda n: opened.platform if n == NAME else None, logs=opened.logs)
    app = build_app_in_memory(settings, clock=clock, state=folder, environment=environment)
    if alarms:
        app.bus.publish(alarm(world.instance, clock.now()))
    return Journey(app, clock)


def alarm(instance: str, at: datetime) -> Message:
    """Return what EventBridge posts when an alarm on the unit's log goes off (facts 5.4)."""
    stamp = at.isoformat()
    dimensions = {"InstanceId": instance}
    metric = {"namespace": "vllm", "name": "errors", "dimensions": dimensions}
    body = {
        "version": "0", "id": "1", "detail-type": "CloudWatch Alarm State Change", "source": "aws.cloudwatch",
        "account": "123456789012", "time": stamp, "region": REGION,
        "resources": [f"arn:aws:cloudwatch:{REGION}:123456789012:alarm:vllm-errors"],
        "detail": {
            "alarmName": "vllm-errors", "state": {"value": "ALARM", "reason": "1 datapoint", "timestamp": stamp},
            "previousState": {"value": "OK", "timestamp": stamp},
            "configuration": {"metrics": [{"id": "m", "metricStat": {"metric": metric, "period": 60, "stat": "Sum"}}]},
        },
    }  # fmt: skip
    return Message(
        id="alert-1", topic=Topic.ALERTS, data=json.dumps(body), attributes={"run": LIVE, "kind": "eventbridge"}
    )
