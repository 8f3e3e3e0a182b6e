"""The words of a sweep on the command line: which server, which cells, how much of it."""

import argparse
import re
from typing import TYPE_CHECKING

from agent.errors import InputRejected

if TYPE_CHECKING:
    from agent.core.sweep.planning import SweepAsked

MOST_TOKENS = 10_000_000
MOST_AT_ONCE = 4096
MOST_RATES = 50
_SIZE = re.compile(r"([1-9][0-9]{0,7})([kK]?)")


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the contract's flags, and what says more of a server that no service of services.toml is."""
    add = parser.add_argument
    add("--service", metavar="S", help="measure a service of services.toml; a person approves it first")
    add("--url", metavar="U", help="address of the server; one on this machine needs no approval")
    add("--model", metavar="M", help="Hugging Face id or path of the model behind --url")
    add("--concurrency", metavar="N,N", default="1,4,16", help="requests in flight (default: 1,4,16)")
    add("--context", metavar="T,T", default="1k", help="tokens of a request, prompt and answer (default: 1k = 1024)")
    add("--output-tokens", metavar="N", default="128", help="tokens of an answer (default: 128)")
    add("--rates", metavar="N", type=int, default=0, help="also measure N request rates per context (guidellm)")
    add("--requests", metavar="N", type=int, help="measured requests per cell (default: 4 x concurrency, at least 16)")
    add(
        "--driver",
        choices=["auto", "guidellm", "vllm"],
        default="auto",
        help="load generator (default: an installed one)",
    )
    add("--install-driver", action="store_true", help="install guidellm in an environment of its own (1.5 GB)")
    add("--max-minutes", metavar="N", type=float, default=20.0, help="limit of all runs together (default: 20)")
    add("--max-usd", metavar="X", type=float, help="cost limit of the server during the sweep")
    add("--out", metavar="DIR", help="folder of the sweep (default: sweeps/NAME); run the same again to resume it")
    add("--accelerator", metavar="A", help="accelerator behind --url, such as nvidia-l4 or cpu; predicts the knee")
    add("--count", metavar="N", type=int, help="number of accelerators")
    add("--flags", metavar="TEXT", default="", help="the server's vLLM flags as one shell-quoted string")
    add("--vllm", metavar="V", help="its vLLM version, if the server does not report it")
    add("--served-model", metavar="NAME", help="name of the model in requests, if it differs")
    add("--tokenizer", metavar="T", help="folder or Hugging Face id of its tokenizer (default: the model's)")
    add("--api-key-name", metavar="NAME", help="name of the key in SERVICE_API_KEYS for the server behind --url")
    add("--stop-at-eos", action="store_true", help="let answers end early (default: each has the requested length)")
    add(
        "--stop-over-saturated",
        action="store_true",
        help="let guidellm end a cell once its queue and time to first token keep growing",
    )
    add("--seed", metavar="N", type=int, default=0, help="random seed of the prompts (default: 0)")
    add("--by", metavar="NAME", help="your name (shown as not verified)")
    add("--id", metavar="ID", help="with approve: the id shown with the plan; required for a plan of an AI client")
    add("--wait", action="store_true", help="wait until somebody approves it, then run")
    add("--dry-run", action="store_true", help="show the plan; store and send nothing")


def check_limits(args: argparse.Namespace) -> None:
    """Refuse what names no server, or two, or limits that make no sense.

    Raises:
        InputRejected: It does.
    """
    if not args.service and not (args.url and args.model):
        raise InputRejected(
            "no sweep was planned", why="want one server", hint="give --service S, or --url U and --model M"
        )
    if not 0 < args.max_minutes <= 24 * 60 or (args.max_usd is not None and not 0 < args.max_usd < 1e6):
        raise InputRejected(
            "no sweep was planned", why="the limits make no sense", hint="--max-minutes 20 --max-usd 5, more than 0"
        )


def cells_asked(args: argparse.Namespace) -> "SweepAsked":
    """Return the cells that were asked for.

    Raises:
        InputRejected: A size is none, or an answer leaves no prompt.
    """
    from pydantic import ValidationError

    from agent.core.sweep.planning import SweepAsked

    contexts = _sizes("--context", args.context, most=MOST_TOKENS)
    (output,) = _sizes("--output-tokens", args.output_tokens, most=MOST_TOKENS)[:1]
    users = _sizes("--concurrency", args.concurrency, most=MOST_AT_ONCE)
    if args.requests is not None and not 0 < args.requests <= 100_000:
        raise InputRejected("no sweep was planned", why=f"--requests is {args.requests}", hint="want 1 to 100000")
    rates = _rates(args)
    try:
        asked = SweepAsked(
            contexts=contexts, concurrencies=users, output_tokens=output, requests=args.requests, rates=rates
        )
        asked.cells()
    except ValidationError as error:
        why = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise InputRejected(
            "no sweep was planned", why=why, hint="lower --output-tokens, or raise --context"
        ) from error
    return asked


def _rates(args: argparse.Namespace) -> int:
    """Return how many request rates each context gets; 0 for none."""
    rates: int = args.rates
    if not 0 <= rates <= MOST_RATES:
        raise InputRejected("no sweep was planned", why=f"--rates is {rates}", hint=f"want 1 to {MOST_RATES}")
    if rates and args.driver == "vllm":
        raise InputRejected(
            "no sweep was planned",
            why="vllm bench serve has no run of request rates",
            hint="use --driver guidellm, or remove --rates",
        )
    return rates


def _sizes(flag: str, text: str, *, most: int) -> tuple[int, ...]:
    """Read numbers such as ``1k,8k``; k is 1,024."""
    found = []
    for word in text.split(","):
        matched = _SIZE.fullmatch(word.strip())
        size = int(matched[1]) * (1024 if matched[2] else 1) if matched else 0
        if not 0 < size <= most:
            hint = f"want whole numbers of 1 to {most:,} with commas between, such as 1k,8k"
            raise InputRejected(f"{flag} was not read", why=f"{word!r} is no size", hint=hint)
        found.append(size)
    return tuple(found)
