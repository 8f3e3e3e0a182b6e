"""Where a service on EC2 runs: which instance of which region, which unit, and what is known of both."""

from typing import Any, Final

from agent.adapters.aws.client import Aws
from agent.core.service.services import Service
from agent.core.value import Value, digest
from agent.errors import InputRejected
from agent.ports.platform import NotDeployed

Json = dict[str, Any]

GONE: Final = frozenset({"shutting-down", "terminated"})
EFFECT_TAG: Final = "sre-agent-effect"
"""Key, generation and kind of our newest change of the instance: ``KEY GENERATION start|stop|type:TYPE``."""
REVISION_TAG: Final = "sre-agent-revision"
CALLED_TAG: Final = "sre-agent-called"
"""The newest call of that change that EC2 accepted: ``KEY start|stop MARK``, the mark of the state before the call."""
FAILED_TAG: Final = "sre-agent-failed"
"""Why that change ended badly, where EC2 refused a step of it: ``KEY CODE``."""


class UnitTarget(Value):
    """What starts the server on an instance: a systemd unit, or a container that nothing else starts.

    Attributes:
        unit: Its name; empty where it is a container.
        container: The same the other way round.
        instance: ``i-...``, or a tag as ``NAME=VALUE``.
        accelerator: What services.toml says, for instances whose nvidia-smi does not tell.
        log_group: Of CloudWatch Logs, where the server's log goes; empty where it is read on the instance.
        log_stream: How its streams' names begin; None is the instance's id.
        port: Where the server is asked on the instance; None reads its own flag.
        known: The accelerators of the catalogue, to name the cards of another type by.
    """

    service: str
    region: str
    instance: str
    unit: str = ""
    container: str = ""
    accelerator: str
    accelerator_count: int = 1
    port: int | None = None
    log_group: str = ""
    log_stream: str | None = None
    known: tuple[str, ...] = ()

    @classmethod
    def of(cls, service: Service, known: tuple[str, ...] = ()) -> "UnitTarget":
        """Return the unit of a watched service."""
        return cls(
            service=service.name,
            region=service.location or "",
            instance=service.instance or "",
            unit=service.unit or "",
            container=service.container or "",
            accelerator=service.accelerator,
            accelerator_count=service.accelerator_count,
            port=service.port,
            log_group=service.log_group or "",
            log_stream=service.log_stream,
            known=known,
        )

    @property
    def says(self) -> str:
        """The unit as people name it."""
        return f"{self.name} on {self.instance} in {self.region}"

    @property
    def name(self) -> str:
        """Which it is on its instance."""
        return self.unit or f"container {self.container}"

    @property
    def ledger(self) -> str:
        """What the files of its ledger are called."""
        return self.unit or f"container-{self.container}"


class Tagged(Value):
    """Our newest start, stop or change of type of the instance, as its tags hold it.

    Attributes:
        does: ``start``, ``stop`` or ``type:`` with the new type.
        failed: EC2's code where it refused a step of it for good.
        called: ``start`` or ``stop``, where EC2 accepted that; empty before.
        mark: Of the instance as it was then, see ``Instance.mark``.
    """

    key: str
    generation: int
    does: str
    revision: str
    failed: str = ""
    called: str = ""
    mark: str = ""

    @property
    def new_type(self) -> str:
        """The type that it is to have; empty where its type stays."""
        kind, _, name = self.does.partition(":")
        return name if kind == "type" else ""


class Instance(Value):
    """An instance as EC2 shows it.

    Attributes:
        state: Such as ``running`` or ``stopped``.
        spot: Whether it can be taken away at any time.
        lives_on_instance_store: Whether its disks are lost with a stop.
        volumes: The ids of its volumes, which stay with a stop.
        elastic_ips: Addresses that stay with it, and cost.
        public_ip: One that it loses with a stop.
        launched: When it was started last.
        reason: Why and when it was stopped last, as EC2 says it; empty while it runs.
    """

    id: str
    type: str
    state: str
    zone: str = ""
    spot: bool = False
    lives_on_instance_store: bool = False
    volumes: tuple[str, ...] = ()
    elastic_ips: tuple[str, ...] = ()
    public_ip: str = ""
    launched: str = ""
    reason: str = ""
    tagged: Tagged | None = None

    def mark(self, called: str) -> str:
        """Return what the next start moves after a stop that is called, and the next stop after a start."""
        return digest([self.launched if called == "stop" else self.reason])[:12]

    @property
    def turned(self) -> str:
        """What somebody did since EC2 accepted our newest call: ``started``, ``stopped`` or nothing.

        A read may be older than the call; then the mark is the one before it, and nobody did anything.
        """
        tagged = self.tagged
        if tagged is None or not tagged.called or tagged.mark == self.mark(tagged.called):
            return ""
        if tagged.called == "stop":
            return "started" if self.state in {"pending", "running"} else ""
        return "stopped" if self.state in {"stopping", "stopped"} else ""


def find_instance(aws: Aws, target: UnitTarget) -> Instance:
    """Return the instance of a target.

    Raises:
        NotDeployed: There is none, or it is terminated.
        InputRejected: A tag names several.
    """
    if target.instance.startswith("i-"):
        asked: Json = {"InstanceIds": [target.instance]}
    else:
        name, _, value = target.instance.partition("=")
        asked = {"Filters": [{"Name": f"tag:{name}", "Values": [value]}]}
    try:
        answer = aws.call(target.region, "describe_instances", **asked)
    except InputRejected as error:
        if "InvalidInstanceID.NotFound" not in error.why:
            raise
        answer = {"Reservations": []}
    found = [i for r in answer["Reservations"] for i in r["Instances"] if i["State"]["Name"] not in GONE]
    if not found:
        raise NotDeployed(
            f"the instance of {target.service!r} was not found",
            why=f"{target.region} has no {target.instance}, or it is terminated",
            hint="look at instance and location of the service in services.toml",
        )
    if len(found) > 1:
        names = ", ".join(sorted(str(i["InstanceId"]) for i in found))
        raise InputRejected(
            f"the instance of {target.service!r} is not plain",
            why=f"tag {target.instance} names {len(found)}: {names}",
            hint="name one of them in services.toml: instance = 'i-...'",
        )
    return _instance(found[0])


def _instance(row: Json) -> Instance:
    tags = {t["Key"]: t["Value"] for t in row.get("Tags", ())}
    given = [n["Association"] for n in row.get("NetworkInterfaces", ()) if n.get("Association")]
    kept = tuple(a["PublicIp"] for a in given if a.get("IpOwnerId") != "amazon")
    lost = next((a["PublicIp"] for a in given if a.get("IpOwnerId") == "amazon"), "")
    return Instance(
        id=row["InstanceId"],
        type=row["InstanceType"],
        state=row["State"]["Name"],
        zone=row.get("Placement", {}).get("AvailabilityZone", ""),
        spot=row.get("InstanceLifecycle") == "spot",
        lives_on_instance_store=row.get("RootDeviceType") == "instance-store",
        volumes=tuple(d["Ebs"]["VolumeId"] for d in row.get("BlockDeviceMappings", ()) if "Ebs" in d),
        elastic_ips=kept,
        public_ip=lost,
        launched=str(row.get("LaunchTime", "")),
        reason=row.get("StateTransitionReason", ""),
        tagged=_tagged(tags),
    )


def _tagged(tags: dict[str, str]) -> Tagged | None:
    words = tags.get(EFFECT_TAG, "").split()
    if len(words) != 3 or not words[1].isdecimal():
        return None
    failed_key, _, failed = tags.get(FAILED_TAG, "").partition(" ")
    made = tags.get(CALLED_TAG, "").split()
    called, mark = made[1:] if len(made) == 3 and made[0] == words[0] else ("", "")
    return Tagged(
        key=words[0],
        generation=int(words[1]),
        does=words[2],
        revision=tags.get(REVISION_TAG, ""),
        failed=failed if failed_key == words[0] else "",
        called=called,
        mark=mark,
    )
