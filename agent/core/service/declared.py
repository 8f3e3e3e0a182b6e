"""What a service is meant to run, as its owner declares it in ``services.toml``; what is left out is not compared."""

import shlex

from pydantic import Field, field_validator

from agent.core.service.serving import Probe
from agent.core.value import Value


class Declared(Value):
    """The declared state; None means that the owner did not say.

    Attributes:
        image: With its tag or digest.
        flags: Every vLLM flag, as one shell-quoted line; a flag that runs and is not in it is drift too.
        env: Variables by name; others are not compared.
        model_revision: Commit of the checkpoint, as ``--revision`` names it.
        memory_mib: Memory limit of the container, MiB.
    """

    image: str | None = Field(default=None, min_length=1)
    flags: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    model_revision: str | None = Field(default=None, min_length=1)
    cpu: float | None = Field(default=None, gt=0)
    memory_mib: int | None = Field(default=None, gt=0)
    min_instances: int | None = Field(default=None, ge=0)
    max_instances: int | None = Field(default=None, ge=0)
    concurrency: int | None = Field(default=None, ge=1)
    startup_probe: Probe | None = None
    liveness_probe: Probe | None = None

    @field_validator("flags")
    @classmethod
    def _readable(cls, flags: str | None) -> str | None:
        try:
            words = shlex.split(flags or "")
        except ValueError as error:
            raise ValueError(f"want one line of flags as a shell takes it: {error}") from error
        if words and not words[0].startswith("-"):
            raise ValueError("want flags alone, such as '--max-model-len 16384 --enforce-eager'")
        return flags

    @property
    def flag_words(self) -> tuple[str, ...] | None:
        """The flags as words of a command line; None where they were not declared."""
        return tuple(shlex.split(self.flags)) if self.flags is not None else None
