"""Changing one flag leaves every other word as it was."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.service.container_args import flag_map, served_model, server_args, with_flag
from agent.errors import InputRejected

ARGS = ("serve", "/mnt/models/gemma", "--max-model-len", "32768", "--enforce-eager",
        "--limit-mm-per-prompt", '{"image":4}', "--kv_cache_dtype=fp8", "-tp", "2")  # fmt: skip


def test_flags_are_read_in_both_spellings() -> None:
    """Value behind a blank, behind an equal sign, a switch, an underscore and a short form."""
    assert flag_map(ARGS) == {
        "max-model-len": "32768",
        "enforce-eager": "",
        "limit-mm-per-prompt": '{"image":4}',
        "kv-cache-dtype": "fp8",
        "tensor-parallel-size": "2",
    }


@pytest.mark.parametrize(
    ("name", "value", "want"),
    [
        ("max_model_len", "8192", (*ARGS[:2], "--max-model-len", "8192", *ARGS[4:])),
        ("max-model-len", None, (*ARGS[:2], *ARGS[4:])),
        ("enforce-eager", None, (*ARGS[:4], *ARGS[5:])),
        ("language-model-only", "", (*ARGS, "--language-model-only")),
        ("kv-cache-dtype", "auto", (*ARGS[:7], "--kv-cache-dtype", "auto", *ARGS[8:])),
        ("no-enforce-eager", "", (*ARGS[:4], "--no-enforce-eager", *ARGS[5:])),
    ],
    ids=["in place", "removed", "switch removed", "switch added", "equal sign", "opposite"],
)
def test_one_flag_is_changed_in_its_place(name: str, value: str | None, want: tuple[str, ...]) -> None:
    """Everything else stays, byte by byte."""
    assert with_flag(ARGS, name, value) == want


def test_a_flag_given_twice_is_left_once() -> None:
    """VLLM takes the last one; two would hide the change."""
    assert with_flag(("--port", "1", "--x", "--port", "2"), "port", "3") == ("--x", "--port", "3")


MANY = ("serve", "m", "--served-model-name", "a", "b", "--port", "1")


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("c", ("serve", "m", "--served-model-name", "c", "--port", "1")),
        ("c d", ("serve", "m", "--served-model-name", "c", "d", "--port", "1")),
        (None, ("serve", "m", "--port", "1")),
    ],
    ids=["one", "two", "taken away"],
)
def test_a_flag_of_several_words_is_changed_whole(value: str | None, want: tuple[str, ...]) -> None:
    """A word left behind would be one more name, or a word that the server does not understand."""
    assert with_flag(MANY, "served-model-name", value) == want
    assert flag_map(MANY)["served-model-name"] == "a b"


def test_the_dotted_parts_of_a_flag_go_with_it() -> None:
    """VLLM puts them together behind all others: one left behind would win over what was set."""
    dotted = ("serve", "m", "--limit-mm-per-prompt.image", "4", "--limit-mm-per-prompt.video=1", "--port", "1")
    want = ("serve", "m", "--limit-mm-per-prompt", '{"image":1}', "--port", "1")
    assert with_flag(dotted, "limit-mm-per-prompt", '{"image":1}') == want


def test_the_model_is_found_in_both_places() -> None:
    """After serve, or in --model."""
    assert served_model(("vllm",), ARGS) == "/mnt/models/gemma"
    assert served_model((), ("--model=google/gemma-4-31B-it",)) == "google/gemma-4-31B-it"
    assert served_model((), ("--port", "1")) is None


WORD = st.text(alphabet='abc{}":,0123456789./', min_size=1, max_size=12)


@given(st.lists(st.tuples(st.sampled_from(["--alpha", "--beta", "--gamma"]), WORD), max_size=6), WORD)
def test_setting_then_reading_gives_the_value_and_keeps_the_rest(pairs: list[tuple[str, str]], value: str) -> None:
    """For any words: the flag has the value, and every other flag what it had."""
    args = tuple(word for pair in pairs for word in pair)
    changed = flag_map(with_flag(args, "delta", value))
    assert changed == flag_map(args) | {"delta": value}


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ((), ("serve", "m", "--x", "1")),
        ((), ("m", "--x", "1")),
        ((), ("--x", "1")),
        (("vllm", "serve", "m", "--x", "1"), ()),
        (("/opt/venv/bin/vllm",), ("serve", "m", "--x", "1")),
        (("python3", "-u", "-m", "vllm.entrypoints.openai.api_server"), ("--x", "1")),
        (("numactl", "--cpunodebind=0", "vllm", "serve"), ("m", "--x", "1")),
        (("/bin/server",), ("serve", "m", "--x", "1")),
    ],
    ids=["args", "entry point", "flags", "command", "program", "module", "wrapper", "another program"],
)
def test_a_servers_words_are_found_wherever_they_stand(command: tuple[str, ...], args: tuple[str, ...]) -> None:
    """Program and subcommand go, model and flags stay; a flag in the command counts like any other."""
    assert server_args(command, args)[-2:] == ("--x", "1")
    assert set(server_args(command, args)) <= {"m", "--x", "1"}


@pytest.mark.parametrize(
    ("command", "args", "says"),
    [
        (("sh", "-c"), ("vllm serve m --x 1",), "a shell line"),
        ((), ("-c", "vllm serve m"), "a shell line"),
        (("/bin/bash", "-lc", "vllm serve m"), (), "a shell line"),
        (("tini", "--", "bash"), ("-c", "vllm serve m"), "a shell line"),
        ((), ("serve", "m", "--x", "$(LEN)"), "fills in '$(LEN)'"),
        (("/start.sh",), (), "'/start.sh' starts the server"),
        ((), (), "only the image"),
    ],
    ids=["sh", "shell as entry point", "bash", "behind tini", "expansion", "script", "nothing"],
)
def test_words_that_cannot_be_read_are_refused_by_name(
    command: tuple[str, ...], args: tuple[str, ...], says: str
) -> None:
    """A flag that nobody can read is not a flag that is absent."""
    with pytest.raises(InputRejected, match=re.escape(says)):
        server_args(command, args)
