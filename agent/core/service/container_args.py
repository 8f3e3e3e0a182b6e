"""The words of a container's command line: reading and changing one flag, leaving every other word as it was."""

import re
from functools import lru_cache

from agent.errors import InputRejected

_FLAG = re.compile(r"^--?[A-Za-z]")
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh"})
_VALUE = re.compile(r"^(?!-)|^-\d")  # a word that is no flag, or a negative number
_MANY = frozenset(
    {"served-model-name", "lora-modules", "cudagraph-capture-sizes", "middleware"}
)  # nargs="+" in vLLM 0.32
_ALIASES = {"tp": "tensor-parallel-size", "pp": "pipeline-parallel-size", "q": "quantization"}


@lru_cache(maxsize=1024)  # a plan looks at the same words of a service again and again
def canonical_name(word: str) -> str:
    """Return a flag's name without dashes, ``_`` as ``-``, short forms spelled out."""
    name = word.lstrip("-").split("=", 1)[0].replace("_", "-")
    return _ALIASES.get(name, name)


def flag_map(args: tuple[str, ...]) -> dict[str, str]:
    """Return flags by name, the last one winning as in vLLM; a switch has the value ``""``.

    Args:
        args: The container's words, verbatim; ``--flag value`` and ``--flag=value`` both count.
    """
    flags: dict[str, str] = {}
    for index, word in enumerate(args):
        if _is_flag(word):
            flags[canonical_name(word)] = _value(args, index)
    return flags


def with_flag(args: tuple[str, ...], name: str, value: str | None) -> tuple[str, ...]:
    """Return the words with one flag set in place, added at the end, or (``value`` None) taken away.

    A flag given several times is left once, at its last place. Setting ``--x`` removes ``--no-x``, and the reverse;
    it removes ``--x.y`` too, which vLLM gathers into a ``--x`` behind all others. The values of a flag that takes
    several words are one text with blanks.
    """
    wanted = canonical_name(name)
    opposite = wanted.removeprefix("no-") if wanted.startswith("no-") else f"no-{wanted}"
    words: list[str] = []
    place: int | None = None
    index = 0
    while index < len(args):
        word = args[index]
        width = 1 + _values(args, index) if _is_flag(word) else 1
        here = canonical_name(word)
        if _is_flag(word) and (here in {wanted, opposite} or here.startswith(f"{wanted}.")):
            place = len(words)
        else:
            words.extend(args[index : index + width])
        index += width
    if value is not None:
        new = [f"--{wanted}"] if value == "" else [f"--{wanted}", *(value.split() if wanted in _MANY else [value])]
        at = len(words) if place is None else place
        words[at:at] = new
    return tuple(words)


def served_model(command: tuple[str, ...], args: tuple[str, ...]) -> str | None:
    """Return the model that the words serve: after ``serve``, or in ``--model``; None where neither stands."""
    words = (*command, *args)
    if "serve" in words:
        after = words.index("serve") + 1
        if after < len(words) and not words[after].startswith("-"):
            return words[after]
    return flag_map(words).get("model")


def starts_in_shell(command: tuple[str, ...], args: tuple[str, ...]) -> bool:
    """Whether a shell line starts the server: its flags are no words of their own there."""
    words = (*command, *args)
    return any(word.rsplit("/", 1)[-1] in _SHELLS for word in words[:4]) or "-c" in words[:2]


def server_args(command: tuple[str, ...], args: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that vLLM's own parser reads, wherever they stand, without the program in front.

    Raises:
        InputRejected: They cannot be read: a shell or a script starts the server, the platform fills in a variable, or
            nothing but the image knows. What is not read must not be taken for absent.
    """
    words = (*command, *args)
    filled_in = next((word for word in words if "$(" in word), None)
    if starts_in_shell(command, args):
        raise _unread("a shell line starts the server", "give command and flags as words of their own")
    if filled_in is not None:
        raise _unread(f"the platform fills in {filled_in[:80]!r}", "write its value out")
    if not words:
        raise _unread("only the image knows them", "give the server's flags as words of the container")
    for index, word in enumerate(words):
        if word.rsplit("/", 1)[-1] == "vllm" and words[index + 1 : index + 2] == ("serve",):
            return words[index + 2 :]
        if word == "-m" and words[index + 1 : index + 2] and words[index + 1].startswith("vllm."):
            return words[index + 2 :]
    front = words[: next((n for n, word in enumerate(words) if word.startswith("-")), len(words))]
    if "serve" in front:
        return words[front.index("serve") + 1 :]
    if command and not command[0].startswith("-"):
        raise _unread(f"{command[0][:80]!r} starts the server", "start vLLM itself, with its flags as words")
    return words


def _unread(why: str, hint: str) -> InputRejected:
    return InputRejected("the server's words were not read", why=why, hint=hint)


def _is_flag(word: str) -> bool:
    return _FLAG.match(word) is not None


def _values(args: tuple[str, ...], index: int) -> int:
    """How many words after a flag are its values: as many as stand there where it takes several, else one at most."""
    if "=" in args[index]:
        return 0
    most = len(args) if canonical_name(args[index]) in _MANY else 1
    count = 0
    while count < most and index + 1 + count < len(args) and _VALUE.match(args[index + 1 + count]):
        count += 1
    return count


def _value(args: tuple[str, ...], index: int) -> str:
    if "=" in args[index]:
        return args[index].split("=", 1)[1]
    return " ".join(args[index + 1 : index + 1 + _values(args, index)])
