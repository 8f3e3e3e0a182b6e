"""What the engine printed about its memory, and whether it was this very start."""

import pytest

from agent.core.plan.printed_memory import Printed, printed
from agent.core.service.serving import ServingConfig

ARGS = "(APIServer pid=1) INFO [utils.py:240] non-default args: {'model': 'org/m', 'max_model_len': 131072, 'dtype': 'half'}"
LENGTH = (
    "ValueError: To serve at least one request with the model's max seq len (131072), (4.0 GiB KV cache is needed, which "
    "is larger than the available KV cache memory (1.0 GiB). Based on the available memory, the estimated maximum model "
    "length is 32640. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
)
TOKENS = (
    "ValueError: The model's max seq len (163840) is larger than the maximum number of tokens that can be stored in KV "
    "cache (13360). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
)
SEQUENCES = "ValueError: max_num_seqs (256) exceeds available Mamba cache blocks (100). Please lower max_num_seqs."


def config(*flags: str) -> ServingConfig:
    return ServingConfig(command=("vllm",), args=("serve", "org/m", *flags))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (LENGTH, ("max-model-len", 131072, 32640, "4.0 GiB", "1.0 GiB")),
        (LENGTH.replace("(4.0 GiB KV", "4.0 GB KV"), ("max-model-len", 131072, 32640, "4.0 GB", "1.0 GiB")),
        (TOKENS, ("max-model-len", 163840, 13360, "163,840", "13,360")),
        (SEQUENCES, ("max-num-seqs", 256, 100, "256", "100")),
    ],
    ids=["estimate", "older words", "tokens of the pool", "recurrent states"],
)
def test_a_line_is_read(line: str, said: tuple[object, ...]) -> None:
    """With its place in the log."""
    found = printed(["first", line], revision="r")
    assert found is not None
    assert (found.flag, found.asked, found.most, found.need, found.pool) == said
    assert (found.place, found.revision) == ("log:2", "r")
    assert line.startswith(found.line[:100])


@pytest.mark.parametrize(
    "line",
    [
        "nothing of the kind",
        LENGTH.split(". Based", maxsplit=1)[0],
        LENGTH.replace("length is 32640", "length is 0"),
        LENGTH.replace("length is 32640", "length is 262144"),
        LENGTH.replace("32640", "9" * 5000),
    ],
    ids=["other text", "no estimate", "nothing fits", "more than was asked", "endless"],
)
def test_what_is_no_figure_is_nothing(line: str) -> None:
    """A need and a pool without a maximum are never scaled to one."""
    assert printed([line], revision="r") is None


def test_only_the_last_start_of_a_log_counts() -> None:
    """A newer start has other arguments, and has not failed for memory yet."""
    assert printed([ARGS, LENGTH, ARGS.replace("131072", "1024")], revision="r") is None
    again = printed([ARGS.replace("131072", "1024"), TOKENS, ARGS, LENGTH], revision="r")
    assert again is not None
    assert again.place == "log:4"
    assert again.args == ("serve", "org/m", "--max-model-len", "131072", "--dtype", "half")


def test_arguments_that_cannot_be_read_prove_nothing() -> None:
    """Nobody can compare them."""
    assert printed(["non-default args: Namespace(model='m')", LENGTH], revision="r") is None


def of(args: tuple[str, ...] = (), revision: str | None = "r") -> Printed:
    found = printed([LENGTH], revision=revision)
    assert found is not None
    return found.with_(args=args)


SAID = ("serve", "org/m", "--max-model-len", "131072", "--gpu-memory-utilization", "0.9")


@pytest.mark.parametrize(
    ("said", "there", "revision", "same"),
    [
        (of(), config("--max-model-len", "131072"), "r", True),
        (of(), config("--max-model-len", "65536"), "r", False),
        (of(), config("--max-model-len", "131072"), "r-2", False),
        (of(), config("--max-model-len", "131072"), None, False),
        (of(revision=None), config("--max-model-len", "131072"), "r", False),
        (of(SAID), config("--max-model-len", "131072", "--gpu-memory-utilization", "0.90"), "r", True),
        (of(SAID), config("--max-model-len", "131072", "--gpu-memory-utilization", "0.95"), "r", False),
        (of(SAID), config("--max-model-len", "131072"), "r", False),
        (of(SAID, None), config("--max-model-len", "131072", "--gpu-memory-utilization", "0.9"), None, True),
        (
            of(SAID, None),
            config("--max-model-len", "131072", "--gpu-memory-utilization", "0.9", "--kv-cache-dtype", "fp8"),
            None,
            False,
        ),
        (
            of(SAID, None),
            config("--max-model-len", "131072", "--gpu-memory-utilization", "0.9", "--port", "8000"),
            None,
            True,
        ),
    ],
    ids=[
        "same revision", "other length", "other revision", "nobody names the newest", "nobody says whose log",
        "same arguments", "other share", "a flag is gone", "arguments alone", "a flag more", "a port more",
    ],
)  # fmt: skip
def test_it_is_of_this_configuration(said: Printed, there: ServingConfig, revision: str | None, same: bool) -> None:
    """Nothing may speak against it, and revision or arguments must speak for it."""
    assert said.is_of(there, revision) is same
