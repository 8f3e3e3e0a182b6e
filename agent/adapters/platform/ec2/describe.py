"""A unit as our typed configuration: words verbatim, secrets by name, the machine's size by its type."""

from collections.abc import Iterable
from typing import Any

from agent.adapters.platform.ec2.command_line import KEPT_IN, CommandLine, environment, parsed
from agent.adapters.platform.ec2.drop_in import bare
from agent.adapters.platform.ec2.instance.unit_files import sha
from agent.adapters.platform.ec2.target import Instance, UnitTarget
from agent.adapters.platform.host.describe import accelerator_of
from agent.adapters.platform.traffic import LATEST
from agent.core.service.serving import EnvVar, Live, ServingConfig
from agent.core.value import Value, canonical, digest
from agent.errors import InputRejected
from agent.strict_json import read_object

Json = dict[str, Any]


class Size(Value):
    """What an instance type has.

    Attributes:
        instance_store: Whether it has disks of the host, whose data a stop loses.
    """

    cpu: float | None = None
    memory_mib: int | None = None
    instance_store: bool = False


class Seen(Value):
    """A unit and its instance as they were read at one time.

    Attributes:
        report: What the script reported, now or, of an instance that does not answer, last.
        online: Whether it reported it now.
        volumes: Its volumes, as people read them.
    """

    model_config = Value.model_config | {"arbitrary_types_allowed": True}

    target: UnitTarget
    instance: Instance
    size: Size
    report: Json
    online: bool
    volumes: tuple[str, ...] = ()

    @property
    def generation(self) -> int:
        """Counts our changes of the unit and of the instance."""
        tagged = self.instance.tagged
        return max(int(self.report["generation"]), tagged.generation if tagged is not None else 0)

    @property
    def tag_is_newest(self) -> bool:
        """Whether our newest change is a start or a stop of the instance."""
        tagged = self.instance.tagged
        return tagged is not None and tagged.generation > int(self.report["generation"])

    @property
    def runs(self) -> bool:
        """Whether the instance is meant to run: by our newest word, else, or where somebody turned it, by its state."""
        if self.tag_is_newest and self.instance.tagged is not None and not self.instance.turned:
            return self.instance.tagged.does != "stop"
        return self.instance.state in {"pending", "running"}

    @property
    def newest_effect(self) -> Json | None:
        """The newest entry of the unit's ledger."""
        effects = self.report["effects"]
        return effects[-1] if effects else None

    @property
    def drifted(self) -> bool:
        """Whether somebody else changed the unit's files since our newest change of them."""
        newest = self.newest_effect
        if newest is None or not newest["restarted"]:
            return False
        return bool(newest["others"] != self.report["others"] or newest["holds"] != sha(self.report["text"] or ""))

    @property
    def template(self) -> str:
        """The present state, to put back: our own file whole, the operator's by their digest."""
        held = {name: self.report[name] for name in ("text", "others", "words")}
        return canonical(held | {"type": self.instance.type, "runs": self.runs}).decode()

    @property
    def etag(self) -> str:
        """Changes with every change of the unit's files, of the type, and of what we made of the instance."""
        instance, report = self.instance, self.report
        held = [instance.id, instance.type, self.runs, report["others"], report["text"], self.generation]
        return f'"{digest(held)[:24]}"'

    @property
    def revision(self) -> str:
        """The name of the present state: of our newest effect, else of the files."""
        newest, tagged = self.newest_effect, self.instance.tagged
        if self.tag_is_newest and tagged is not None:
            return tagged.revision
        if newest is None or self.drifted:
            return self._native(self.report["others"], sha(self.report["text"] or ""))
        return str(newest["revision"])

    @property
    def ready_revision(self) -> str | None:
        """The revision that serves, or that served last."""
        if self.ready is True:
            return self.revision
        served = next((e["revision"] for e in reversed(self.report["effects"]) if e["ready"]), None)
        if served is not None:
            return str(served)
        first = next(iter(self.report["effects"]), None)
        if first is not None:
            return self._native(first["others"], first["before"])
        return self._native(self.report["others"], sha(self.report["text"] or "")) if self.tag_is_newest else None

    @property
    def ready(self) -> bool | None:
        """Whether the newest start serves; None while nobody knows."""
        refused = self.tag_is_newest and self.instance.tagged is not None and self.instance.tagged.failed
        if not self.runs or refused:
            return False
        if self.instance.state != "running" or not self.online:
            return None
        ready = self.report["ready"]
        return bool(ready) if ready is not None else None

    def _native(self, others: str, text: str) -> str:
        return f"{self.target.service}-{digest([self.instance.id, others, text])[:8]}"


def config_of(seen: Seen) -> ServingConfig:
    """Return the configuration of a unit.

    Raises:
        InputRejected: Its ExecStart starts no server that we know.
    """
    line = line_of(seen)
    env = environment(line, seen.report["env"])
    if seen.target.container:
        env = tuple(EnvVar(name=n, value=v, secret=None if v is not None else KEPT_IN) for n, v in seen.report["env"])
    count = 1 if seen.runs else 0
    return ServingConfig(
        image=line.image,
        command=line.front if seen.target.container or not line.image else (),
        args=line.args,
        env=env,
        cpu=seen.size.cpu,
        memory_mib=seen.size.memory_mib,
        instance_type=seen.instance.type,
        accelerator=_accelerator(seen.report["gpus"], seen.target),
        accelerator_count=len(seen.report["gpus"]) or seen.target.accelerator_count,
        min_instances=count,
        max_instances=count,
    )


def line_of(seen: Seen) -> CommandLine:
    """Return the command of a unit, taken apart."""
    if seen.report["unread"]:
        raise InputRejected(
            f"the ExecStart of {seen.target.says} was not read",
            why=str(seen.report["unread"]),
            hint="let it start vllm serve with its flags as words, or as one variable of its EnvironmentFile",
        )
    if seen.target.container:
        words, split = tuple(seen.report["words"]), int(seen.report["entrypoint"])
        return CommandLine(front=words[:split], args=words[split:], image=str(seen.report["image"]))
    return parsed(tuple(seen.report["words"]))


def live_of(seen: Seen) -> Live:
    """Return a unit as we know it."""
    ready = seen.ready
    effects = {str(e["revision"]): str(e["key"]) for e in seen.report["effects"]}
    tagged = seen.instance.tagged
    if tagged is not None:
        effects[tagged.revision] = tagged.key
    return Live(
        service=seen.target.service,
        platform="ec2",
        config=config_of(seen),
        uid=f"{seen.instance.id}/{seen.target.unit or seen.target.container}",
        generation=seen.generation,
        etag=seen.etag,
        template=seen.template,
        traffic=LATEST,
        latest_ready_revision=seen.ready_revision,
        latest_created_revision=seen.revision,
        stamps=effects,
        ready=ready,
        reconciling=ready is None or (not seen.runs and seen.instance.state != "stopped"),
        message=message_of(seen) if ready is False else "",
        spare_accelerator=False,
        resumes_with=None if seen.runs else (1, 1),
        can_stage=False,
        when_stopped=when_stopped(seen),
    )


def when_stopped(seen: Seen) -> tuple[str, ...]:
    """Return what a stop of the instance leaves to pay for, and what is lost with it."""
    kept = []
    if seen.volumes:
        kept.append(f"its volumes go on costing: {', '.join(seen.volumes)}")
    if seen.instance.elastic_ips:
        kept.append(f"its Elastic IP addresses go on costing: {', '.join(seen.instance.elastic_ips)}")
    if seen.instance.public_ip:
        kept.append(f"its public address {seen.instance.public_ip} is given up; a start brings another")
    if seen.size.instance_store:
        kept.append(f"data on the instance store disks of {seen.instance.type} are lost")
    return tuple(kept)


def message_of(seen: Seen) -> str:
    """Return why it does not serve."""
    if seen.instance.state != "running":
        costs = [clause for clause in when_stopped(seen) if "go on costing" in clause]
        kept = costs if seen.instance.state == "stopped" else []
        return "; ".join((f"instance {seen.instance.id} is {seen.instance.state}", *kept))
    return str(seen.report["says"])


def template_parts(text: str) -> Json:
    """Read a template.

    Raises:
        InputRejected: It is none of ours.
    """
    parts = read_object(text.encode(), what="template", limit=None)
    if set(parts) != {"text", "others", "words", "type", "runs"}:
        raise InputRejected("the template was not read", why="it is none of a unit", hint="use one that was described")
    return parts


def same_template(one: str, other: str) -> bool:
    """Whether two templates say the same, but for the notes in our own file."""
    held = [template_parts(text) for text in (one, other)]
    return held[0] | {"text": bare(held[0]["text"])} == held[1] | {"text": bare(held[1]["text"])}


def _accelerator(gpus: Iterable[list[Any]], target: UnitTarget) -> str:
    """The declared name where the card is that, else the catalogue's; a card that nobody knows keeps its own."""
    found = next(iter(gpus), None)
    if found is None:
        return target.accelerator
    declared = accelerator_of(str(found[0]), [target.accelerator])
    return declared if declared == target.accelerator else accelerator_of(str(found[0]), target.known)
