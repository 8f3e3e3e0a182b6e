"""What Terraform must know of a model endpoint of our own: flags that are proved to fit, and a probe that waits."""

import json
import shlex
import sys

from agent.catalogue.load_fit import load_fit_catalogue
from agent.catalogue.load_platforms import load_platform_catalogue
from agent.core.value import Value
from agent.errors import InputRejected
from agent.fit.advice.advice import Demand
from agent.fit.advice.advise import advise
from agent.fit.advice.alternatives import Market
from agent.fit.assessment import Setup
from agent.fit.bounds import Bounds
from agent.fit.question import question_from
from agent.fit.speed.startup import probe_budget, startup_time

STORAGE = "gcs-fuse"
LIMITS = "cloud_run_gpu"


class Wanted(Value):
    """What the endpoint must do for the agent: one incident at a time asks short questions.

    Attributes:
        context: Tokens of one question and its answer.
        users: Questions at once.
        shape: Name of the Cloud Run shape in prices.toml.
    """

    model: str = "google/gemma-4-26B-A4B-it-qat-w4a16-ct"
    accelerator: str = "nvidia-l4"
    vllm: str = "0.22.1"
    context: int = 16384
    users: int = 4
    shape: str = "cloud-run-l4"
    location: str = "us-east4"
    bucket: str = "example-models"


EXAMPLE = Wanted()


def endpoint_values(wanted: Wanted) -> dict[str, object]:
    """Return the variable ``gemma_endpoint``.

    Flags are those of the best option that keeps the model and fits at the pessimistic end of every term; the probe
    outlasts the slow end of a start from a mounted bucket.

    Raises:
        InputRejected: No such option, or the platform cannot wait that long.
    """
    flags, start_s = _proved_flags(wanted), _start(wanted)
    platforms = load_platform_catalogue()
    probe = probe_budget(start_s, platforms.probe_limits[LIMITS]) if start_s is not None else None
    if flags is None or probe is None or not probe.enough:
        raise InputRejected(
            f"{wanted.model} on {wanted.accelerator} was not laid out",
            why=probe.note if flags and probe else "no flags are known with which it fits, or its start is unknown",
            hint="ask sre-agent advise for a smaller checkpoint or another accelerator",
        )
    shape = next(s for s in platforms.shapes if s.name == wanted.shape)
    return {
        "name": "gemma-for-sre",
        "location": wanted.location,
        "image": f"vllm/vllm-openai:v{wanted.vllm}",
        "bucket": wanted.bucket,
        "bucket_path": wanted.model.rpartition("/")[2],
        "model": wanted.model,
        "accelerator": wanted.accelerator,
        "cpu": str(shape.vcpus),
        "memory": f"{shape.memory_bytes // 2**30}Gi",
        "flags": shlex.split(flags),
        "probe_period": probe.period_s,
        "probe_count": probe.failure_threshold,
        "engine_ready": probe.engine_ready_timeout_s,
    }


def _proved_flags(wanted: Wanted) -> str | None:
    """The flags of the wanted setup where it fits, else of the best option that keeps the model; None where none."""
    catalogue, platforms = load_fit_catalogue(), load_platform_catalogue()
    flags = f"--max-model-len {wanted.context} --max-num-seqs {wanted.users}"
    asked = {"model": wanted.model, "accelerator": wanted.accelerator, "vllm": wanted.vllm, "flags": flags}
    question = question_from({**asked, "need_context": str(wanted.context), "need_users": str(wanted.users)})
    setup = Setup(
        model=catalogue.models.find(wanted.model),
        accelerator=catalogue.accelerator(wanted.accelerator),
        count=question.count,
        flags=question.flags,
        rules=catalogue.rules(wanted.vllm),
    )
    models = tuple({known.name: known for known in catalogue.models.by_name.values()}.values())
    market = Market(models=models, accelerators=catalogue.accelerators, shapes=platforms.shapes)
    answer = advise(setup, Demand(needs=question.needs, platform="cloud_run"), market).to_json()
    if answer["current"]["fits"]:
        return flags
    return next((str(option["flags"]) for option in answer["options"] if option["model"] == wanted.model), None)


def _start(wanted: Wanted) -> Bounds | None:
    """Seconds of a cold start that reads the checkpoint from a mounted bucket; None where its size is unknown."""
    platforms = load_platform_catalogue()
    size = load_fit_catalogue().models.find(wanted.model).checkpoint_bytes
    return startup_time(size, platforms.load_rates[STORAGE].bytes_per_s, platforms.warm_up)


if __name__ == "__main__":
    json.dump({"gemma_endpoint": endpoint_values(EXAMPLE)}, sys.stdout, indent=2)
    print()
