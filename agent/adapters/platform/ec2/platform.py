"""EC2 as a platform: a unit changed by one drop-in under a digest of what was read, an instance started and stopped."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from agent.adapters.aws.client import Aws
from agent.adapters.platform.ec2.command import AgentOffline, InstanceCommands
from agent.adapters.platform.ec2.command_line import with_environment
from agent.adapters.platform.ec2.describe import (
    Seen,
    Size,
    config_of,
    line_of,
    live_of,
    message_of,
    same_template,
    template_parts,
)
from agent.adapters.platform.ec2.drop_in import drop_in
from agent.adapters.platform.ec2.instance.docker_engine import written
from agent.adapters.platform.ec2.instance.unit_files import sha
from agent.adapters.platform.ec2.measure import Meter
from agent.adapters.platform.ec2.power import (
    check_stop,
    check_type,
    operation_name,
    power,
    power_progress,
    refuse_creation,
)
from agent.adapters.platform.ec2.target import Instance, UnitTarget, find_instance
from agent.adapters.platform.refusals import (
    no_shift,
    no_such_revision,
    require_kinds,
    require_same,
    unknown_operation,
    watched,
)
from agent.adapters.platform.server_flags import flag_without_effect
from agent.adapters.platform.traffic import LATEST
from agent.core.change.verification import Measurement
from agent.core.plan.action import (
    ForPerson,
    Lifecycle,
    LifecycleOperation,
    Restart,
    SetEnv,
    SetFlag,
    SetInstanceType,
    SetModel,
    applied,
)
from agent.core.plan.lifecycle import lifecycle_of
from agent.core.service.serving import Live
from agent.core.value import canonical
from agent.errors import DependencyFailed, InputRejected
from agent.ports.control import LeaseEnd
from agent.ports.model_server import ModelServer
from agent.ports.platform import HINTS, NotDeployed, Operation, Order, Restore, seconds_to_send

Json = dict[str, Any]

POSSIBLE: Final = (SetFlag, SetEnv, SetModel, SetInstanceType, Restart, Lifecycle, ForPerson)


_VARIABLE: Final = re.compile(r"\$\{|^\$\w+$")  # within a word, or a word by itself, as systemd reads them


class Ec2Platform:
    """Describes and changes the units of ``services.toml``."""

    def __init__(
        self,
        targets: Mapping[str, UnitTarget],
        aws: Aws,
        commands: InstanceCommands,
        meter: Callable[[Seen], Meter],
    ) -> None:
        self._targets = dict(targets)
        self._aws = aws
        self._commands = commands
        self._meter = meter
        self._size = cache(self._read_size)
        self._volumes = cache(self._read_volumes)

    def describe(self, service: str) -> Live:
        """Return the unit as it is now; of a stopped instance as it was last read."""
        return live_of(self.look(service))

    def validate(self, order: Order) -> None:
        """Check a change without making it."""
        seen = self._checked(order)
        if _power_of(order) is None:
            self._text(seen, order)

    def apply(self, order: Order) -> Operation:
        """Start the change, or return what this effect started before."""
        _possible(order)
        seen = self.look(order.service)
        found = self._ours(seen, order.effect_key)
        if found is not None and not found.remains:
            return found
        if found is None:
            _require_same(seen, order)
            self._check(seen, order)
        does = _power_of(order)
        if does is not None:
            return power(self._aws, seen, order, does)
        return self._change(seen, order, self._text(seen, order), resumes=found is not None)

    def restore(self, order: Restore) -> Operation:
        """Start putting a prior state back: our drop-in as it was or none, or the instance running or stopped."""
        if not order.template:
            raise refuse_creation(order.service)
        parts = template_parts(order.template)
        seen = self.look(order.service)
        found = self._ours(seen, order.effect_key)
        if found is not None and not found.remains:
            return found
        if found is None:
            _require_same(seen, order)
        tagged = seen.instance.tagged
        ours = tagged is not None and tagged.key == order.effect_key
        does = tagged.does if ours and tagged is not None else _power_back(seen, parts)
        if does:
            return power(self._aws, seen, order, does)
        if not seen.runs:
            raise InputRejected(
                f"{seen.target.says} was not restored", why="its instance is stopped", hint="start it, then put it back"
            )
        return self._change(seen, order, parts["text"], resumes=found is not None)

    def shift(self, service: str, *, revision: str, etag: str, effect_key: str, lease_end: LeaseEnd) -> Operation:  # noqa: ARG002 - refused, whoever asks
        """Refuse: a unit is one server, and it has all the traffic."""
        why = f"an instance runs one server, and nothing was brought up beside it ({effect_key} at {etag})"
        raise no_shift(service, revision, why)

    def find(self, service: str, effect_key: str) -> Operation | None:
        """Return the operation of an effect by its stamp in the ledger or the tags, or None."""
        return self._ours(self.look(service), effect_key)

    def operation(self, name: str) -> Operation:
        """Return how far an operation has come."""
        words = name.split("/")
        if len(words) != 3 or words[0] != "ec2" or words[1] not in self._targets:
            raise unknown_operation(name, "no unit here is its own", hint="look into services.toml")
        try:
            found = self.find(words[1], words[2])
        except NotDeployed as error:
            return Operation(name=name, done=True, ok=None, says=f"the instance is gone: {error.why}")
        says = "the ledger on the instance bears its stamp no more"
        return found or Operation(name=name, done=True, ok=None, says=says)

    def restored(self, service: str, *, template: str, traffic: str) -> bool:
        """Whether our drop-in and the operator's files are as they were, and the instance runs as it did."""
        try:
            seen = self.look(service)
        except NotDeployed:
            return not template
        if not template or traffic != canonical([t.model_dump(mode="json") for t in LATEST]).decode():
            return False
        return same_template(seen.template, template)

    def measure(self, service: str, revision: str) -> tuple[Measurement, ...]:
        """Measure a revision: ready, then one real completion asked on the instance itself."""
        seen = self.look(service)
        if revision != seen.revision:
            known = {e["revision"] for e in seen.report["effects"]} | {seen.ready_revision}
            if revision in known:
                return self._meter(seen).not_newest(revision)
            raise no_such_revision(revision, f"{seen.target.says} has none of that name")
        return self._meter(seen).measure(message_of(seen))

    def server(self, service: str) -> ModelServer:
        """Return the server of the unit."""
        seen = self.look(service)
        return self._meter(seen).server()

    def look(self, service: str) -> Seen:
        """Read instance and unit: the unit from the instance itself, or, where that is down, as it was last read.

        Raises:
            DependencyFailed: The instance runs and its SSM agent does not answer, or nothing is known of a stopped one.
        """
        target = self._target(service)
        instance = find_instance(self._aws, target)
        size = self._size(target.region, instance.type)
        volumes = self._volumes(target.region, instance.volumes)
        if instance.state == "running" and self._commands.online(target, instance.id) == "Online":
            report = self._commands.ask(target, instance.id, "read")
            return Seen(target=target, instance=instance, size=size, report=report, online=True, volumes=volumes)
        last = self._commands.last_read(target, instance.id)
        seen = last and Seen(target=target, instance=instance, size=size, report=last, online=False, volumes=volumes)
        if seen and (instance.state != "running" or seen.tag_is_newest):
            return seen
        if instance.state == "running":
            raise AgentOffline(
                f"{target.says} was not read",
                why=f"the SSM agent of {instance.id} is not online",
                hint="look at amazon-ssm-agent, at the role of the instance and at its way to Systems Manager",
            )
        raise DependencyFailed(
            f"{target.says} was not read",
            why=f"instance {instance.id} is {instance.state}, and nothing that it reported in the last 30 days is kept",
            hint=f"start it: aws ec2 start-instances --instance-ids {instance.id}",
        )

    def target_of(self, service: str) -> tuple[UnitTarget, Instance]:
        """Return where a service's log is read."""
        target = self._target(service)
        return target, find_instance(self._aws, target)

    def _checked(self, order: Order) -> Seen:
        _possible(order)
        seen = self.look(order.service)
        self._check(seen, order)
        return seen

    def _check(self, seen: Seen, order: Order) -> None:
        if lifecycle_of(order.actions) is LifecycleOperation.STOP:
            check_stop(seen)
        for action in order.actions:
            if isinstance(action, SetInstanceType):
                check_type(self._aws, seen, action)

    def _text(self, seen: Seen, order: Order) -> str | None:
        """Return what our drop-in is to hold; a restart leaves it as it is."""
        if not seen.online:
            raise InputRejected(
                f"{seen.target.says} was not changed",
                why=f"instance {seen.instance.id} is {seen.instance.state}",
                hint="start it first: sre-agent change SERVICE --start",
            )
        before = config_of(seen)
        for action in order.actions:
            without_effect = flag_without_effect(before, action)
            if without_effect:
                raise InputRejected("the change was refused", why=without_effect, hint=HINTS[InputRejected])
        after = applied(before, order.actions)
        if after == before:
            text: str | None = seen.report["text"]
            return text
        if seen.target.container:
            return written(list(after.args), [[e.name, e.value] for e in after.env])
        _require_literal(order)
        line = with_environment(line_of(seen), seen.report["env"], after.env).with_(args=after.args)
        refs = frozenset(seen.report["refs"])
        return drop_in(line.words, refs, order)

    def _change(self, seen: Seen, order: Order | Restore, text: str | None, *, resumes: bool) -> Operation:
        """Run the script once; it refuses where the files are not those that were read."""
        expects = {
            "others": seen.report["others"],
            "text": sha(seen.report["text"] or ""),
            "generation": seen.report["generation"],
        }
        left_s = seconds_to_send(order.lease_end, order.service)
        self._commands.change(
            seen.target,
            seen.instance.id,
            within_s=left_s,
            key=order.effect_key,
            revision=order.revision,
            incident=order.incident,
            generation=seen.generation + (0 if resumes else 1),
            expects=expects,
            text=text,
        )
        name = operation_name(order.service, order.effect_key)
        return Operation(name=name, done=False, ok=None, says=f"{order.revision} is starting")

    def _ours(self, seen: Seen, effect_key: str) -> Operation | None:  # noqa: PLR0911 - one for each end
        """Look for the stamp; say how far the effect is, or what followed it."""
        name, tagged = operation_name(seen.target.service, effect_key), seen.instance.tagged
        if tagged is not None and tagged.key == effect_key:
            if seen.tag_is_newest:
                return power_progress(seen, tagged)
            return Operation(name=name, done=True, ok=None, says="a later change of the unit followed")
        entry = next((e for e in seen.report["effects"] if e["key"] == effect_key), None)
        if entry is None:
            return None
        if entry["key"] != seen.report["effects"][-1]["key"] or seen.tag_is_newest:
            return Operation(name=name, done=True, ok=None, says="a later change followed")
        if not entry["restarted"]:
            remains = "the unit is still to be restarted"
            return Operation(name=name, done=False, ok=None, says=remains, remains=remains)
        if seen.drifted:
            return Operation(name=name, done=True, ok=None, says="somebody changed the unit's files since")
        says = f"{entry['revision']} came up" if seen.ready else str(seen.report["says"])
        return Operation(name=name, done=seen.ready is not None, ok=seen.ready, says=says)

    def _read_size(self, region: str, kind: str) -> Size:
        rows = self._aws.call(region, "describe_instance_types", InstanceTypes=[kind])["InstanceTypes"]
        if not rows:
            return Size()
        return Size(
            cpu=rows[0]["VCpuInfo"]["DefaultVCpus"],
            memory_mib=rows[0]["MemoryInfo"]["SizeInMiB"],
            instance_store=bool(rows[0].get("InstanceStorageSupported")),
        )

    def _read_volumes(self, region: str, ids: tuple[str, ...]) -> tuple[str, ...]:
        rows = self._aws.call(region, "describe_volumes", VolumeIds=list(ids))["Volumes"] if ids else ()
        return tuple(f"{row['VolumeId']} ({row['Size']} GiB {row['VolumeType']})" for row in rows)

    def _target(self, service: str) -> UnitTarget:
        return watched(self._targets, service, "EC2")


def _power_of(order: Order) -> str | None:
    """Return what becomes of the instance; None where only its unit changes."""
    operation = lifecycle_of(order.actions)
    types = [action.instance_type for action in order.actions if isinstance(action, SetInstanceType)]
    return operation.value if operation is not None else f"type:{types[0]}" if types else None


def _power_back(seen: Seen, parts: Json) -> str:
    """Return what must become of the instance so that it is as it was; nothing where only its unit differs."""
    if parts["runs"] and parts["type"] != seen.instance.type:
        return f"type:{parts['type']}"
    if parts["runs"] != seen.runs or (parts["runs"] and seen.instance.state in {"stopping", "stopped"}):
        return "start" if parts["runs"] else "stop"
    return ""


def _possible(order: Order) -> None:
    """Refuse what one instance cannot do.

    Raises:
        InputRejected: An action is of that sort.
    """
    operation = lifecycle_of(order.actions)
    if operation in {LifecycleOperation.CREATE, LifecycleOperation.DELETE}:
        raise refuse_creation(order.service)
    require_kinds(order.actions, POSSIBLE, place="one instance", staged=order.staged)
    if _power_of(order) is not None and len(order.actions) > 1:
        why = "one instance cannot do that: a stop of the instance together with more"
        raise InputRejected("the change was refused", why=why, hint="make another plan")


def _require_literal(order: Order) -> None:
    """Refuse values that systemd would fill in."""
    for action in order.actions:
        values = [action.value] if isinstance(action, SetFlag | SetEnv) else []
        values += [action.model] if isinstance(action, SetModel) else []
        if any(_VARIABLE.search(value or "") for value in values):
            raise InputRejected(
                "the change was refused",
                why="a value names a variable, and systemd would fill it in",
                hint=HINTS[InputRejected],
            )


def _require_same(seen: Seen, order: Order | Restore) -> None:
    """Refuse a change that was made for another state, or whose name is taken.

    Raises:
        StateConflict: The unit or its instance changed since.
    """
    tagged = seen.instance.tagged
    names = {e["revision"] for e in seen.report["effects"]} | ({tagged.revision} if tagged is not None else set())
    require_same(seen.target.says, order, etag=seen.etag, revisions=names)
