"""Starting and stopping an instance: stamped by tags first, called once, told how far it is."""

from agent.adapters.aws.client import Aws
from agent.adapters.platform.ec2.describe import Seen
from agent.adapters.platform.ec2.target import EFFECT_TAG, REVISION_TAG
from agent.errors import InputRejected, PolicyRefused
from agent.ports.platform import Operation, Order, Restore, seconds_to_send


def check_stop(seen: Seen) -> None:
    """Refuse a stop after which nothing would come back as it was.

    Raises:
        PolicyRefused: The unit is not started at boot, or a stop loses the disks or the instance.
    """
    why, hint = "", ""
    if seen.told["enabled"] != "enabled":
        why = f"{seen.target.unit} is {seen.told['enabled'] or 'not known'} at boot, so a start would not bring it back"
        hint = f"let it start at boot: systemctl enable {seen.target.unit}"
    elif seen.instance.lives_on_instance_store:
        why = "its root volume is an instance store, which EC2 cannot stop"
        hint = "terminate it by hand where it may go: aws ec2 terminate-instances"
    elif seen.instance.spot:
        why = "it is a spot instance, which only a persistent request lets stop and start"
        hint = "stop it by hand: aws ec2 stop-instances"
    if why:
        raise PolicyRefused(f"instance {seen.instance.id} was not stopped", why=why, hint=hint)


def power(aws: Aws, seen: Seen, order: Order | Restore, does: str) -> Operation:
    """Stamp the instance, then start or stop it; again, the second call is made where it is still to be made.

    Args:
        aws: The account.
        seen: As it was read for this order.
        order: Whose effect it is.
        does: ``start`` or ``stop``.
    """
    region, instance = seen.target.region, seen.instance
    if instance.tagged is None or instance.tagged.key != order.effect_key:
        tags = {EFFECT_TAG: f"{order.effect_key} {seen.generation + 1} {does}", REVISION_TAG: order.revision}
        rows = [{"Key": key, "Value": value} for key, value in tags.items()]
        left_s = seconds_to_send(order.lease_end, order.service)
        aws.change(region, "create_tags", within_s=left_s, Resources=[instance.id], Tags=rows)
    left_s = seconds_to_send(order.lease_end, order.service)
    aws.change(region, f"{does}_instances", within_s=left_s, InstanceIds=[instance.id])
    says = f"instance {instance.id} is asked to {does}"
    return Operation(name=operation_name(order.service, order.effect_key), done=False, ok=None, says=says)


def power_progress(seen: Seen) -> Operation:
    """Return how far our newest start or stop of the instance has come."""
    tagged, state = seen.instance.tagged, seen.instance.state
    assert tagged is not None, "it bears our stamp"
    name, says = operation_name(seen.target.service, tagged.key), f"instance {seen.instance.id} is {state}"
    if tagged.does == "stop":
        if state == "running":
            return Operation(name=name, done=False, ok=None, says=says, remains="the stop is still to be called")
        ended = state == "stopped"
        says = f"{says}; its volumes and addresses go on costing" if ended else says
        return Operation(name=name, done=ended, ok=True if ended else None, says=says)
    if state == "stopped":
        return Operation(name=name, done=False, ok=None, says=says, remains="the start is still to be called")
    ready = seen.ready
    if ready is None and seen.online:
        says = str(seen.told["says"])
    says = says if ready is not False else str(seen.told["says"])
    return Operation(name=name, done=ready is not None, ok=ready, says="it came up" if ready else says)


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
