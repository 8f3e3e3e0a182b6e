"""What the engine itself printed about the memory of one start: pool and need, and the most that would have fitted."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from agent.core.plan.proof import FLAGS
from agent.core.service.container_args import flag_map
from agent.core.service.logged_config import args_from_log
from agent.core.service.serving import ServingConfig
from agent.core.value import Value

LINE_LIMIT: Final = 4000  # characters; vLLM's own line has some five hundred
KEPT_CHARS: Final = 500

_ARGUMENTS: Final = "non-default args"
_LENGTH: Final = re.compile(
    r"max seq len \((?P<asked>[\d,]+)\), \(?(?P<need>[\d.]+ (?:GiB|GB)) KV cache is needed, which is larger than "
    r"the available KV cache memory \((?P<pool>[\d.]+ (?:GiB|GB))\)"
    r"(?:.{0,200}?estimated maximum model length is (?P<most>[\d,]+))?"
)
_TOKENS: Final = re.compile(
    r"max seq len \((?P<asked>[\d,]+)\) is larger than the maximum number of tokens that can be stored in KV cache "
    r"\((?P<most>[\d,]+)\)"
)
_SEQUENCES: Final = re.compile(
    r"max_num_seqs \((?P<asked>[\d,]+)\) exceeds available Mamba cache blocks \((?P<most>[\d,]+)\)"
)
_UNCOMPARED: Final = frozenset({"model", "served-model-name", "host", "port"})
_FLAGS: Final = {_LENGTH: "max-model-len", _TOKENS: "max-model-len", _SEQUENCES: "max-num-seqs"}


class Printed(Value):
    """One line of the engine about the memory of a start that failed.

    The line is log text, which anything that writes to the log can forge; so it proves a lower value of this one flag
    and nothing else, and whoever approves sees the line.

    Attributes:
        flag: The flag that it speaks of, ``max-model-len`` or ``max-num-seqs``.
        asked: The flag's value at that start.
        most: The largest value that would have fitted, as printed.
        need: What was needed at ``asked``, with its unit.
        pool: What was there, with its unit.
        line: The line, cut to 500 characters; untrusted.
        place: The line of the instance's own log, as in evidence.
        revision: The revision whose instance printed it; None where nobody knows.
        args: The arguments of that start as the engine printed them; empty where it did not.
    """

    flag: str
    asked: int
    most: int
    need: str
    pool: str
    line: str
    place: str
    revision: str | None = None
    args: tuple[str, ...] = ()

    def is_of(self, config: ServingConfig, revision: str | None) -> bool:
        """Whether the start that printed it ran this configuration.

        Args:
            config: What the platform shows.
            revision: The newest revision, as the platform names it.

        Returns:
            False where anything speaks against it, and where nothing speaks for it: neither revision nor arguments.
        """
        flags = flag_map((*config.command, *config.args))
        given = flags.get(self.flag)
        if given is not None and _plain(given) != str(self.asked):
            return False
        if self.revision is not None and revision is not None and self.revision != revision:
            return False
        known = self.revision is not None and revision is not None
        if not self.args:
            return known
        return _agree(flag_map(self.args), flags, all_printed=not known)


def printed(
    lines: Sequence[str], *, revision: str | None, ref: Callable[[int], str] = "log:{}".format
) -> Printed | None:
    """Return what the last start in an instance's own log printed, or None where it printed nothing of the kind.

    Source: vllm/v1/core/kv_cache_utils.py ``_check_enough_kv_cache_memory`` (0.8 to 0.33) searches the longest length
    whose need, sliding windows included, is within the pool; vllm/worker/worker.py ``raise_if_cache_size_invalid`` (0.4
    to 0.10) compares with blocks x block size; vllm/v1/worker/gpu_model_runner.py (0.19 and newer) compares
    max_num_seqs with Mamba blocks. Read 2026-11-21.

    Args:
        lines: The log, redacted; outside text, nothing of it is evaluated.
        revision: Whose log it is.
        ref: Names a line of the log by its place among ``lines``, from 1.
    """
    started = max((n for n, line in enumerate(lines) if _ARGUMENTS in line), default=None)
    logged = args_from_log((lines[started],)) if started is not None else None
    if started is not None and logged is None:
        return None  # it printed arguments that cannot be read, so nobody can compare them
    forward = range(started + 1, len(lines)) if started is not None else range(len(lines) - 1, -1, -1)
    for number in forward:
        found = _read(lines[number])
        if found is not None:
            return found.with_(place=ref(number + 1), revision=revision, args=logged.args if logged is not None else ())
    return None


def _read(line: str) -> Printed | None:
    if len(line) > LINE_LIMIT:
        return None
    for pattern, flag in _FLAGS.items():
        found = pattern.search(line)
        if found is not None:
            said = found.groupdict()
            asked, most = _count(said["asked"]), _count(said.get("most"))
            if not 0 < most < asked:
                return None
            return Printed(
                flag=flag,
                asked=asked,
                most=most,
                need=said.get("need") or f"{asked:,}",
                pool=said.get("pool") or f"{most:,}",
                line=line.strip()[:KEPT_CHARS],
                place="",
            )
    return None


def _count(text: str | None) -> int:
    return int(text.replace(",", "")) if text else 0


def _agree(logged: dict[str, str], given: dict[str, str], *, all_printed: bool) -> bool:
    """Whether every argument that was printed is a flag of the configuration, with the same value.

    A flag of the configuration that was not printed has its default, which vLLM leaves out of that line, if the
    revision is the same; where nobody knows that, it may have been set since, unless it touches no memory.
    """
    same = all(name in _UNCOMPARED or _plain(given.get(name)) == _plain(value) for name, value in logged.items())
    more = [name for name in given if name not in logged and (name not in FLAGS or FLAGS[name])]
    return same and not (all_printed and more)


def _plain(value: str | None) -> str | None:
    """A value without what only its spelling says: blanks, quotes, and 0.90 for 0.9."""
    if value is None:
        return None
    bare = re.sub(r"[\s\"']", "", value)
    try:
        number = float(bare)
    except ValueError:
        return bare
    return str(int(number)) if number == int(number) else str(number)
