"""Starting, stopping and giving an instance another type: stamped by tags first, each call made once, told how far."""

from contextlib import suppress
from typing import Final

from agent.adapters.aws.client import Aws
from agent.adapters.aws.errors import code_of
from agent.adapters.platform.ec2.describe import Seen, message_of
from agent.adapters.platform.ec2.target import CALLED_TAG, EFFECT_TAG, FAILED_TAG, REVISION_TAG, Tagged
from agent.core.plan.action import SetInstanceType
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, SreError, StateConflict
from agent.ports.platform import Operation, Order, Restore, seconds_to_send

NO_ROOM: Final = frozenset({"InsufficientInstanceCapacity", "InsufficientHostCapacity"})
REFUSED: Final = {
    "InsufficientInstanceCapacity": "the zone has none of this type now",
    "InsufficientHostCapacity": "the zone has none of this type now",
    "VcpuLimitExceeded": "the vCPU quota of this instance family is too small",
    "InstanceLimitExceeded": "the quota of instances is too small",
}
"""What keeps an instance that was stopped for another type from starting as it; in the service's words else."""


def check_stop(seen: Seen) -> None:
    """Refuse a stop after which nothing would come back as it was.

    Raises:
        PolicyRefused: The unit is not started at boot, or a stop loses the disks or the instance.
    """
    why, hint = "", ""
    if seen.report["enabled"] != "enabled":
        why = (
            f"{seen.target.name} is {seen.report['enabled'] or 'not known'} at boot, so a start would not bring it back"
        )
        enable = f"systemctl enable {seen.target.unit}"
        if seen.target.container:
            enable = f"docker update --restart unless-stopped {seen.target.container}; systemctl enable docker"
        hint = f"let it start at boot: {enable}"
    elif seen.instance.lives_on_instance_store:
        why = "its root volume is an instance store, which EC2 cannot stop"
        hint = "terminate it by hand where it may go: aws ec2 terminate-instances"
    elif seen.instance.spot:
        why = "it is a spot instance, which only a persistent request lets stop and start"
        hint = "stop it by hand: aws ec2 stop-instances"
    if why:
        raise PolicyRefused(f"instance {seen.instance.id} was not stopped", why=why, hint=hint)


def check_type(aws: Aws, seen: Seen, action: SetInstanceType) -> None:
    """Refuse a type that the zone does not have, or that is not what the plan was computed for.

    Raises:
        InputRejected: It is so, or the instance does not run.
        PolicyRefused: The instance cannot be stopped for it.
    """
    what, region, name = f"the type of {seen.instance.id} was not changed", seen.target.region, action.instance_type
    if seen.instance.state != "running":
        by_hand = f"aws ec2 modify-instance-attribute --instance-id {seen.instance.id} --instance-type {name}"
        raise InputRejected(
            what, why=f"it is {seen.instance.state}", hint=f"start it first, or change it by hand: {by_hand}"
        )
    check_stop(seen)
    filters = [{"Name": "location", "Values": [seen.instance.zone]}, {"Name": "instance-type", "Values": [name]}]
    offered = aws.call(region, "describe_instance_type_offerings", LocationType="availability-zone", Filters=filters)[
        "InstanceTypeOfferings"
    ]
    if not offered:
        raise InputRejected(
            what,
            why=f"zone {seen.instance.zone} does not have {name}",
            hint="choose another type, or move it to another zone by hand; sre-agent advise lists types",
        )
    row = aws.call(region, "describe_instance_types", InstanceTypes=[name])["InstanceTypes"][0]
    found = (float(row["VCpuInfo"]["DefaultVCpus"]), row["MemoryInfo"]["SizeInMiB"])
    if found != (action.cpu, action.memory_mib):
        raise InputRejected(
            what,
            why=f"{name} has {found[0]:g} vCPUs and {found[1]} MiB, the plan was made for {action.cpu:g} and "
            f"{action.memory_mib} MiB",
            hint="correct the entry of prices.toml and ask again",
        )


def power(aws: Aws, seen: Seen, order: Order | Restore, does: str) -> Operation:
    """Stamp the instance, then make the next call; again, the one that is still to be made.

    Args:
        aws: The account.
        seen: As it was read for this order.
        order: Whose effect it is.
        does: ``start``, ``stop`` or ``type:`` with the new type.
    """
    instance = seen.instance
    if instance.tagged is None or instance.tagged.key != order.effect_key:
        _tag(aws, seen, order, {EFFECT_TAG: f"{order.effect_key} {seen.generation + 1} {does}",
                                REVISION_TAG: order.revision})  # fmt: skip
    name, wanted = operation_name(order.service, order.effect_key), does.removeprefix("type:")
    if instance.state == "stopping":
        return Operation(name=name, done=False, ok=None, says=f"instance {instance.id} is stopping")
    if does == "stop" or (does != "start" and instance.state != "stopped"):
        _call(aws, seen, order, "stop_instances", InstanceIds=[instance.id])
        _accepted(aws, seen, order, "stop")
        return Operation(name=name, done=False, ok=None, says=f"instance {instance.id} is asked to stop")
    try:
        if does != "start" and instance.type != wanted:
            named = {"Value": wanted}
            _call(aws, seen, order, "modify_instance_attribute", InstanceId=instance.id, InstanceType=named)
        _call(aws, seen, order, "start_instances", InstanceIds=[instance.id])
    except SreError as error:
        code = code_of(error.__cause__)
        if code not in NO_ROOM and (not code or isinstance(error, DependencyFailed | StateConflict)):
            raise  # nobody knows, or a moment's trouble: it is tried again
        _tag(aws, seen, order, {FAILED_TAG: f"{order.effect_key} {code}"})
        return Operation(name=name, done=True, ok=False, says=_why_failed(seen, does, code))
    _accepted(aws, seen, order, "start")
    return Operation(name=name, done=False, ok=None, says=f"instance {instance.id} is asked to start")


def _accepted(aws: Aws, seen: Seen, order: Order | Restore, called: str) -> None:
    """Note the call, so that it is not made again; without the note it is, which does no harm while nobody else did."""
    with suppress(SreError):
        _tag(aws, seen, order, {CALLED_TAG: f"{order.effect_key} {called} {seen.instance.mark(called)}"})


def _tag(aws: Aws, seen: Seen, order: Order | Restore, tags: dict[str, str]) -> None:
    rows = [{"Key": key, "Value": value} for key, value in tags.items()]
    _call(aws, seen, order, "create_tags", Resources=[seen.instance.id], Tags=rows)


def _call(aws: Aws, seen: Seen, order: Order | Restore, operation: str, **asked: object) -> None:
    left_s = seconds_to_send(order.lease_end, order.service)
    aws.change(seen.target.region, operation, within_s=left_s, **asked)


def _why_failed(seen: Seen, does: str, code: str) -> str:
    said = REFUSED.get(code)
    why = f"{code} ({said})" if said else code
    kind = seen.instance.type if does == "start" else does.removeprefix("type:")
    return f"instance {seen.instance.id} did not start as {kind}: {why}; it is stopped"


def power_progress(seen: Seen, tagged: Tagged) -> Operation:
    """Return how far our newest start, stop or change of type of the instance has come."""
    state = seen.instance.state
    name, says = operation_name(seen.target.service, tagged.key), f"instance {seen.instance.id} is {state}"
    if seen.instance.turned:
        return Operation(name=name, done=True, ok=False, says=f"{says}: somebody {seen.instance.turned} it since")
    remains = _remains(seen, tagged)
    if tagged.does == "stop":
        ended = state == "stopped"
        says = message_of(seen) if ended else says
        return Operation(name=name, done=ended, ok=True if ended else None, says=says, remains=remains)
    if tagged.failed:
        says = _why_failed(seen, tagged.does, tagged.failed)
        return Operation(name=name, done=True, ok=False, says=says)
    if state == "stopped" or (tagged.new_type and seen.instance.type != tagged.new_type):
        return Operation(name=name, done=False, ok=None, says=says, remains=remains)
    ready = seen.ready
    if ready is None and seen.online:
        says = str(seen.report["says"])
    says = says if ready is not False else str(seen.report["says"])
    return Operation(name=name, done=ready is not None, ok=ready, says="it came up" if ready else says)


def _remains(seen: Seen, tagged: Tagged) -> str:
    """Return which call is still to be made; a start or stop that EC2 accepted is none."""
    state = seen.instance.state
    if tagged.does == "stop" or (tagged.new_type and seen.instance.type != tagged.new_type):
        calls = {"running": "stop"} if tagged.does == "stop" else {"running": "stop", "stopped": "change of type"}
    else:
        calls = {"stopped": "start"}
    call = calls.get(state, "")
    return f"the {call} is still to be called" if call and call != tagged.called else ""


def operation_name(service: str, effect_key: str) -> str:
    """Return the name of an effect's operation."""
    return f"ec2/{service}/{effect_key}"


def refuse_creation(service: str) -> InputRejected:
    """Return why an instance is neither created nor terminated here."""
    return InputRejected(
        f"{service!r} was not changed",
        why="instances are not created or terminated by the agent: their images, disks and networks are not its own",
        hint="create it yourself: aws ec2 run-instances; aws ec2 terminate-instances removes one with its disks, and "
        "sre-agent change SERVICE --stop only stops it",
    )
