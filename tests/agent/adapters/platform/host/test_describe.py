"""What a command line and a machine mean: words verbatim, cards by their printed names."""

import pytest

from agent.adapters.platform.host.describe import Card, accelerator_of, cards_of, config_of, name_of
from agent.errors import InputRejected

NAMES = ("nvidia-l4", "nvidia-a100-40gb", "nvidia-a100-80gb", "nvidia-h100-80gb", "nvidia-rtx-5070-ti", "nvidia-gb10",
         "nvidia-rtx-pro-6000", "nvidia-rtx-6000-ada", "cpu", "tpu-v6e")  # fmt: skip


@pytest.mark.parametrize(
    ("printed", "meant"),
    [
        ("NVIDIA L4", "nvidia-l4"),
        ("NVIDIA A100-SXM4-80GB", "nvidia-a100-80gb"),
        ("NVIDIA A100-PCIE-40GB", "nvidia-a100-40gb"),
        ("NVIDIA H100 80GB HBM3", "nvidia-h100-80gb"),
        ("NVIDIA GeForce RTX 5070 Ti", "nvidia-rtx-5070-ti"),
        ("NVIDIA RTX 6000 Ada Generation", "nvidia-rtx-6000-ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "nvidia-rtx-pro-6000"),
        ("NVIDIA GB10", "nvidia-gb10"),
        ("NVIDIA GeForce GTX 1080", "nvidia-gtx-1080"),
    ],
)
def test_a_printed_name_is_the_catalogues(printed: str, meant: str) -> None:
    """Every part of the catalogue's name stands in the printed one; an unknown card keeps its own name."""
    assert accelerator_of(printed, NAMES) == meant


def test_smi_rows_are_cards() -> None:
    """Names may hold commas of their own; what is no row is none."""
    printed = "NVIDIA GeForce RTX 5070 Ti, 16303\nNVIDIA GeForce RTX 5070 Ti, 16303\n\nNo devices were found\n"
    assert cards_of(printed) == (Card(name="NVIDIA GeForce RTX 5070 Ti", memory_mib=16303),) * 2


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (("vllm", "serve", "m", "--port", "1"), 1),
        (("/opt/venv/bin/vllm", "serve", "m"), 1),
        (("python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "m"), 3),
        (("python3", "server.py", "serve", "m"), 2),
        (("nice", "-n", "5", "vllm", "serve", "m"), 4),
    ],
)
def test_the_program_ends_where_its_words_begin(words: tuple[str, ...], program: int) -> None:
    """Together they are the operator's words, unchanged."""
    config = config_of(words, {}, (), NAMES)
    assert len(config.command) == program
    assert (*config.command, *config.args) == words
    assert (config.accelerator, config.accelerator_count) == ("cpu", 1)


def test_the_cards_that_are_used_are_counted() -> None:
    """Tensor by pipeline parallel; the other cards of the machine belong to others."""
    cards = (Card(name="NVIDIA L4", memory_mib=23034),) * 8
    words = ("vllm", "serve", "m", "-tp", "2", "--pipeline-parallel-size=2")
    config = config_of(words, {}, cards, NAMES)
    assert (config.accelerator, config.accelerator_count) == ("nvidia-l4", 4)


def test_no_words_are_refused() -> None:
    """Nothing behind the dashes."""
    with pytest.raises(InputRejected):
        config_of((), {}, (), NAMES)


def test_a_name_comes_from_the_served_name_or_the_model() -> None:
    """Fit to be a service's name, whatever the path looks like."""
    plain = config_of(("vllm", "serve", "/srv/Models/Gemma_4 (new)/"), {}, (), NAMES)
    assert name_of(plain, "/srv/Models/Gemma_4 (new)/") == "gemma-4-new"
    served = config_of(("vllm", "serve", "m", "--served-model-name", "Chat.One"), {}, (), NAMES)
    assert name_of(served, "m") == "chat-one"


def test_a_script_that_knows_its_model_needs_no_second_word() -> None:
    """One word is refused unless the model is named beside it."""
    with pytest.raises(InputRejected):
        config_of(("./serve.sh",), {}, (), NAMES)
    assert config_of(("./serve.sh",), {}, (), NAMES, fewest=1).command == ("./serve.sh",)
    assert config_of(("python",), {}, (), NAMES, fewest=1).command == ("python",)
