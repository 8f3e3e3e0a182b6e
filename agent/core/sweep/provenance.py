"""What a measurement was made of: server, flags, versions, hardware, place, time and load generator."""

from enum import StrEnum
from typing import Final

from pydantic import AwareDatetime, Field

from agent.core.value import Value

NOT_COMPARED: Final = frozenset({"sweep", "started_at", "endpoint", "agent_version", "revision"})


class Driver(StrEnum):
    """The load generator that sent the requests."""

    GUIDELLM = "guidellm"
    VLLM = "vllm"  # vllm bench serve


class Limits(Value):
    """What caps the requests that run at once; None means that nobody knows.

    Attributes:
        max_num_seqs: Requests that the engine runs in one step.
        max_num_batched_tokens: Tokens of one step.
        max_model_len: Tokens of one request, prompt and answer together.
        kv_tokens: Distinct tokens that the KV cache holds.
        platform_concurrency: Requests that the platform lets through to all instances at once.
        kv_from: Where ``kv_tokens`` comes from: ``fit``, ``log``, or empty.
    """

    max_num_seqs: int | None = Field(default=None, gt=0)
    max_num_batched_tokens: int | None = Field(default=None, gt=0)
    max_model_len: int | None = Field(default=None, gt=0)
    kv_tokens: int | None = Field(default=None, gt=0)
    platform_concurrency: int | None = Field(default=None, gt=0)
    kv_from: str = ""


class Provenance(Value):
    """Everything that two measurements must share to be compared; empty or None means that nobody said.

    Attributes:
        sweep: Id of the sweep.
        service: Name in services.toml; empty for a bare URL.
        endpoint: Scheme, host and port that the requests went to.
        model: Hugging Face id, or what the person called it.
        served_model: The name in the requests.
        image: Image with its digest.
        flags: The server's flags after the model, shell-quoted, without secrets; None where nobody knows.
        vllm: Version, as the server or services.toml says.
        accelerator_count: Devices of one instance.
        instances: Instances that served, None where the platform decides.
        seed: Of the load generator's prompts.
        ignore_eos: Whether every answer had exactly the asked length.
    """

    sweep: str
    service: str = ""
    endpoint: str
    model: str
    served_model: str
    platform: str = ""
    region: str = ""
    accelerator: str = ""
    accelerator_count: int = Field(default=1, ge=1)
    instances: int | None = Field(default=None, ge=1)
    image: str = ""
    flags: str | None = None
    vllm: str = ""
    revision: str = ""
    limits: Limits = Limits()
    driver: Driver
    driver_version: str
    seed: int = 0
    ignore_eos: bool = True
    started_at: AwareDatetime
    agent_version: str = ""
