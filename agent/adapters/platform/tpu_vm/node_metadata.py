"""What stands in a node's metadata and guest attributes: what to run, our effects, and what the node reports."""

from collections.abc import Mapping
from typing import Final, Literal, TypeVar

from pydantic import Field, ValidationError

from agent.adapters.platform.rehearsal.template import Template
from agent.core.value import Value, canonical, digest, mistakes_of
from agent.errors import InputRejected
from agent.strict_json import read_object

SERVER: Final = "vllm-server"
EFFECTS: Final = "sre-agent-effects"
SCRIPT: Final = "startup-script"
MARK: Final = "# sre-agent node script, protocol 1\n"
LIMIT: Final = 256 * 1024  # of one metadata value
KEPT: Final = 20
_V = TypeVar("_V", bound=Value)


class Effect(Value):
    """One change of ours.

    Attributes:
        ends: Whether it stops the server.
        ok: How it ended, noted when the next change was made; None where nobody knew.
    """

    key: str
    revision: str
    ends: bool = False
    ok: bool | None = None
    says: str = ""


class Effects(Value):
    """Our latest changes, the newest last, and how many there were."""

    generation: int = Field(default=0, ge=0)
    effects: tuple[Effect, ...] = ()


class Report(Value):
    """What the node's script says of its container.

    Attributes:
        boot: Names the start of the node.
        revision: The one that was taken up.
        ready_revision: The last one that served.
        preempted: Whether the node is being taken back.
        at: Seconds since 1970 by the node's clock.
    """

    protocol: Literal[1]
    boot: str = ""
    revision: str
    state: Literal["starting", "ready", "failed", "stopped"]
    says: str = ""
    ready_revision: str | None = None
    preempted: bool = False
    at: int = 0


class NodeMetadata(Value):
    """The metadata of a node, as far as it says what runs.

    Attributes:
        script: The startup script.
        template: What to run, as the one canonical text; empty where our script does not run it.
        effects: What we changed.
    """

    script: str
    template: str
    effects: Effects

    @property
    def etag(self) -> str:
        """The version token: changes with what runs, with the startup script and with each effect of ours."""
        return digest([self.script, self.template, self.effects.model_dump(mode="json")])

    def effect(self, key: str) -> Effect | None:
        """Return our change of that key."""
        return next((e for e in self.effects.effects if e.key == key), None)

    def next_effects(self, effect: Effect, *, ok: bool | None, says: str) -> str:
        """Return the text of our changes with one more; how the newest before it ended is noted."""
        *older, last = self.effects.effects or (None,)
        noted = [*older, last.with_(ok=ok, says=says[:200])] if last is not None else []
        kept = tuple(e for e in (*noted, effect) if e is not None)[-KEPT:]
        return canonical(Effects(generation=self.effects.generation + 1, effects=kept).model_dump(mode="json")).decode()


def read_metadata(metadata: Mapping[str, str]) -> NodeMetadata:
    """Return what a node's metadata says.

    Raises:
        InputRejected: It is written wrongly.
    """
    script = metadata.get(SCRIPT, "")
    effects = _read(Effects, metadata.get(EFFECTS, "{}"), EFFECTS)
    if MARK not in script or SERVER not in metadata:
        return NodeMetadata(script=script, template="", effects=effects)
    template = _read(Template, metadata[SERVER], SERVER, labels={})
    return NodeMetadata(script=script, template=canonical(template.model_dump(mode="json")).decode(), effects=effects)


def read_report(text: str) -> Report | None:
    """Return what the node's script reported; None where it reported nothing that can be read."""
    try:
        return _read(Report, text, "sre-agent/status") if text else None
    except InputRejected:
        return None


def _read(kind: type[_V], text: str, name: str, **defaults: object) -> _V:
    hint = f"correct the metadata {name!r} of the node, see docs/tpu.md"
    found = read_object(text.encode("utf-8", "replace"), what=f"metadata {name!r}", limit=LIMIT, hint=hint)
    try:
        return kind.model_validate(defaults | found)
    except ValidationError as error:
        raise InputRejected(f"the metadata {name!r} was not read", why=mistakes_of(error)[0], hint=hint) from error
