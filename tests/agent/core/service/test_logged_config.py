"""A server's own log tells the arguments that it was started with."""

from pathlib import Path

import pytest

from agent.core.service.container_args import flag_map, served_model
from agent.core.service.logged_config import args_from_log

ROOT = Path(__file__).resolve().parents[4]


def test_the_arguments_of_a_start_become_flags() -> None:
    """Numbers, switches, lists and objects, as vLLM would take them."""
    line = (
        "(APIServer pid=1) INFO non-default args: {'model_tag': '/m', 'model': '/m', 'max_model_len': 2048, "
        "'enforce_eager': True, 'async_scheduling': False, 'served_model_name': ['tiny'], "
        "'limit_mm_per_prompt': {'image': 4}, 'seed': None}"
    )
    config = args_from_log(("noise", line))
    assert config is not None
    assert served_model(config.command, config.args) == "/m"
    assert flag_map(config.args) == {
        "max-model-len": "2048",
        "enforce-eager": "",
        "no-async-scheduling": "",
        "served-model-name": "tiny",
        "limit-mm-per-prompt": '{"image": 4}',
    }


def test_the_last_start_counts() -> None:
    """A crash loop tells several; the newest is what runs."""
    lines = tuple(f"non-default args: {{'model': 'm', 'max_model_len': {n}}}" for n in (1, 2, 3))
    config = args_from_log(lines)
    assert config is not None
    assert flag_map(config.args) == {"max-model-len": "3"}


def test_the_published_log_with_typographic_quotes_is_read() -> None:
    """As a blog printed it."""
    log = (ROOT / "examples" / "gemma4-31b-nvfp4-two-16gb-cards" / "instance.log").read_text()
    config = args_from_log(tuple(log.splitlines()))
    assert config is not None
    assert flag_map(config.args)["tensor-parallel-size"] == "2"


@pytest.mark.parametrize(
    "line",
    [
        "nothing of the kind",
        "non-default args: {'model': __import__('os').system('true')}",
        "non-default args: {'model': 'm', 'x': Foo()}",
        "non-default args: ['m']",
        "non-default args: {1: 2}",
        "non-default args: {" + "'a': [" * 500 + "}",
        "non-default args: {'model': '" + "x" * 30_000 + "'}",
    ],
    ids=["absent", "a call", "an object", "a list", "odd keys", "deep", "long"],
)
def test_what_is_no_literal_is_not_read(line: str) -> None:
    """Nothing is evaluated; doubt reads nothing."""
    assert args_from_log((line,)) is None
