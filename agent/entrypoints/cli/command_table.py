"""The commands by name, an example of each, and the parser of one, which is imported when it is needed."""

import argparse
import importlib
import re
import shlex
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn, Protocol, cast

COMMANDS: Final = {
    "up": "Run the whole service in this process, with its console.",
    "replay": "Send recorded events through the whole pipeline.",
    "classify": "Classify log records: what broke, one result per record.",
    "fit": "Check whether a model fits an accelerator with the given vLLM flags.",
    "advise": "Rank the configuration changes that make a model fit, each with its cost.",
    "models": "Add, list and show model profiles.",
    "cost": "Price a model per platform: USD per hour, per month, per million tokens.",
    "calibration": "List, add or remove local measurements, and show which predicted ranges use them.",
    "services": "List the watched services, show one, or show what differs from what was declared.",
    "incidents": "List, show and report incidents; acknowledge, assign, comment, close, roll back.",
    "change": "Request a change of a service; people approve it like any other plan.",
    "approve": "Approve a plan.",
    "reject": "Reject a plan and give the reason.",
    "policy": "Explain row by row why the policy allows a change or not.",
    "eval": "Measure accuracy by failure class against a labelled corpus.",
    "watch": "Start or attach to a vLLM server on this machine and watch it.",
    "sweep": "Measure a server under load; show, report or compare the results.",
    "stop": "Show, turn on or turn off the kill switch, which stops every change.",
    "audit": "Show or verify the record of decisions and effects.",
    "notify": "List who is notified of incidents, or send a test notification.",
    "mcp": "Serve operator tools to AI clients: they read and propose, and a person decides.",
    "doctor": "Check every setting, permission and dependency.",
    "completion": "Print the completion script of a shell.",
}
EXIT_CODES: Final = """exit codes:
  0  success
  1  the check failed, such as: the model does not fit, or an incident is still open
  2  invalid input or settings, or the policy refuses the action
  3  a dependency failed"""
EXAMPLES: Final = {
    "up": ("sre-agent up", "sre-agent up --port 9090 --example gemma4-31b-l4-oom"),
    "replay": ("sre-agent replay gemma4-31b-l4-oom", "sre-agent replay incident:inc-4d24780e817e --json"),
    "classify": ("sre-agent classify vllm.log", "kubectl logs deploy/gemma | sre-agent classify - --json"),
    "fit": (
        'sre-agent fit --model google/gemma-3-27b-it --accelerator nvidia-l4 --flags "--max-model-len 8192"',
        "sre-agent fit --batch rows.jsonl --json",
    ),
    "advise": ('sre-agent advise --model google/gemma-3-27b-it --accelerator nvidia-l4 --flags "" --top 3',),
    "models": (
        "sre-agent models list",
        "sre-agent models add ./checkpoint",
        "sre-agent models show google/gemma-4-E2B-it",
    ),
    "cost": ("sre-agent cost --service gemma --busy 0.3",),
    "calibration": (
        "sre-agent calibration list",
        "sre-agent calibration show --json",
        "sre-agent calibration add incident:inc-4d24780e817e",
        "sre-agent calibration remove m-4d24780e817e",
    ),
    "services": ("sre-agent services", "sre-agent services show gemma", "sre-agent services drift --json"),
    "incidents": (
        "sre-agent incidents --open",
        "sre-agent incidents show inc-4d24780e817e --follow",
        'sre-agent incidents comment inc-4d24780e817e --by ana "the quota was raised"',
        "sre-agent incidents report inc-4d24780e817e --format html --out report.html",
    ),
    "change": ('sre-agent change gemma --set-flag max-model-len=8192 --why "shorter prompts" --dry-run',),
    "approve": ("sre-agent approve p-4d24780e817e-1", "sre-agent approve p-4d24780e817e-1 --wait"),
    "reject": ('sre-agent reject p-4d24780e817e-1 --why "not before the release"',),
    "policy": ("sre-agent policy test p-4d24780e817e-1",),
    "eval": ("sre-agent eval corpus.jsonl --with rules",),
    "sweep": ("sre-agent sweep --url http://127.0.0.1:8000 --model gemma --concurrency 1,4,16",),
    "stop": ("sre-agent stop", 'sre-agent stop --why "the cluster is being upgraded"', "sre-agent stop --off"),
    "audit": ("sre-agent audit show", "sre-agent audit verify"),
    "notify": ("sre-agent notify", "sre-agent notify test pagerduty"),
    "mcp": ("sre-agent mcp", "sre-agent mcp --http 8765"),
    "doctor": ("sre-agent doctor",),
    "completion": (
        'eval "$(sre-agent completion bash)"',
        "sre-agent completion zsh > ~/.zfunc/_sre-agent",
        "sre-agent completion fish > ~/.config/fish/completions/sre-agent.fish",
    ),
}
_INTERMIXED: Final = frozenset({"incidents"})  # comment ID --by ana TEXT
_UNKNOWN: Final = "unrecognized arguments: "
_MISSING: Final = "the following arguments are required: "
_VALUE: Final = re.compile(r"(.+): invalid (\w+) value: (.*)")
_WANTED: Final = {"int": "a whole number", "float": "a number"}
_CHOICE: Final = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")


class Command(Protocol):
    """A module in ``entrypoints/cli/commands``."""

    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


class Parser(argparse.ArgumentParser):
    """Reports a mistake in the arguments in our words, with what is near to it.

    Attributes:
        intermixed: Whether an option may stand between a word and the words after it.
    """

    intermixed = False

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments of a command."""
        if self.intermixed:
            return self.parse_intermixed_args(args, namespace)
        return super().parse_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and what to do, in one sentence, and end with 2."""
        from agent.entrypoints.cli.output import message as shown

        why, hint = self._why_and_hint(message)
        self.exit(2, f"{self.prog}: {shown(f'nothing was done: {why}. Hint: {hint}')}\n")

    def _why_and_hint(self, message: str) -> tuple[str, str]:
        """Return a message of argparse as we say it, and what to do about it."""
        flags = [flag for flag in self._option_string_actions if flag.startswith("--")]
        manual = f"see: {self.prog} --help"
        if message.startswith(_UNKNOWN):
            given = message.removeprefix(_UNKNOWN)
            word = given.split()[0].partition("=")[0]
            near = _of_vllm(given, word, flags) or did_you_mean(word, flags)
            return f"unknown argument: {given}", near or ("" if word.startswith("-") else self._example()) or manual
        if message.startswith(_MISSING):
            names = message.removeprefix(_MISSING).split(", ")
            return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} missing", self._example() or manual
        why = message.removeprefix("argument ")
        if choice := _CHOICE.search(message):
            known = re.findall(r"[\w-]+", choice[2])
            why = f"{why[: why.index(':')]}: {choice[1]!r} is none of {', '.join(known)}"
            return why, did_you_mean(choice[1], known) or manual
        if value := _VALUE.search(why):
            return f"{value[1]} is {value[3]}, want {_WANTED.get(value[2], value[2])}", manual
        return why, manual

    def _example(self) -> str:
        """Return the first example of this command or verb."""
        own = self.prog.removeprefix("sre-agent ")
        known = (line for line in EXAMPLES.get(own.split()[0], ()) if line.startswith(f"{self.prog} "))
        return next((f"for example: {line}" for line in known), "")


def _of_vllm(given: str, word: str, flags: list[str]) -> str:
    """Return where a flag of vLLM belongs that was given as one of ours; nothing for any other."""
    from agent.fit.flags.flags import typed_flag_names

    ours = "--flags" in flags and word.removeprefix("--") in typed_flag_names()
    return f"vLLM's own flags are one string: --flags {shlex.quote(given)}" if ours else ""


def did_you_mean(word: str, known: "list[str] | tuple[str, ...]") -> str:
    """Return a question that names the nearest known word, or nothing where none is near."""
    from difflib import get_close_matches

    near = get_close_matches(word, known, n=1)
    return f"did you mean {near[0]}?" if near else ""


def load_command(name: str) -> Command:
    """Import one command."""
    return cast("Command", importlib.import_module(f"agent.entrypoints.cli.commands.{name}"))


def parser_of(name: str) -> Parser:
    """Return the parser of a command, with its examples and the exit codes below it."""
    parser = Parser(
        prog=f"sre-agent {name}", description=COMMANDS[name], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    load_command(name).configure(parser)
    parser.intermixed = name in _INTERMIXED
    for verb, its_own in verbs_of(parser).items():
        its_own.epilog = _shown([line for line in EXAMPLES.get(name, ()) if f"sre-agent {name} {verb}" in line])
        its_own.formatter_class = argparse.RawDescriptionHelpFormatter
    examples = _shown(EXAMPLES.get(name, ()))
    own = parser.epilog or ""
    parts = (own, "" if "  sre-agent " in own else examples, EXIT_CODES)
    parser.epilog = "\n\n".join(part for part in parts if part)
    return parser


def _shown(examples: Iterable[str]) -> str:
    return "\n".join(("examples:", *(f"  {line}" for line in examples)))


def verbs_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of a command's verbs by name, of those that have parsers of their own."""
    actions = parser._actions  # noqa: SLF001 - argparse tells it no other way
    own = (action for action in actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001
    return {verb: its_own for action in own for verb, its_own in action.choices.items()}
