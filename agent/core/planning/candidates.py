"""What could be done about a diagnosis: for each fix of the catalogue, typed actions with their values."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from agent.core.diagnosis.diagnosis import Diagnosis
from agent.core.plan.action import (
    Action,
    ForPerson,
    Restart,
    SetAccelerator,
    SetConcurrency,
    SetFlag,
    SetInstanceType,
    SetLivenessProbe,
    SetModel,
    SetResources,
    SetScaling,
    SetStrategy,
)
from agent.core.plan.capacity import Capacity, FitOption, Move
from agent.core.plan.plan import FitSummary
from agent.core.plan.printed_memory import Printed
from agent.core.planning.longer_start import READY_TIMEOUT, engine_timeout_s, longer_start
from agent.core.planning.proving import manual_task
from agent.core.planning.runbook import change_commands, instruction
from agent.core.service.container_args import flag_map, served_model, with_flag
from agent.core.service.serving import Live, Probe, ServingConfig, Strategy

FIT_CLASSES = frozenset({
    "gpu_oom_weights", "gpu_oom_profile", "gpu_oom_runtime", "kv_cache_insufficient", "tpu_hbm_oom",
    "unsupported_dtype_or_quant",  # a cache or weight format that the card has no kernels for is a matter of flags too
})  # fmt: skip
L4_SHAPES_MIB = (16_384, 24_576, 32_768)  # memory an L4 service may have with 4, 6 and 8 vCPU
ROOM_PERCENT = 50  # of the cache in use: twice as many requests of the same size still find room
TAKEN_FLAG_VALUES = frozenset({"lower", "up"})


@dataclass(frozen=True, kw_only=True)
class LoggedConfig:
    """A configuration that only the server's own log tells, and where it runs."""

    config: ServingConfig
    platform: str | None


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Something that could be done.

    Attributes:
        fit: What the arithmetic says, where the candidate came from it; None to compute it.
    """

    actions: tuple[Action, ...]
    why: str
    fit: FitSummary | None = None
    notes: tuple[str, ...] = ()
    cost_usd_per_h: float | None = None
    decode_tokens_per_s: float | None = None
    takes_away: str = ""


def candidates(
    service: str,
    diagnosis: Diagnosis,
    live: Live | None,
    fits: Capacity,
    *,
    logged: LoggedConfig | None = None,
    platform: str | None = None,
    printed: Printed | None = None,
) -> Iterator[Candidate]:
    """Yield what could be done, best first; a person's runbook always comes last.

    Args:
        service: The service in trouble.
        diagnosis: What broke, with the catalogue's fixes, best first.
        live: The service as it is, or None where we have no adapter for its platform.
        fits: The arithmetic.
        logged: What the server's own log says of its configuration, where nobody can describe it.
        platform: Where the service runs, as its signals say.
        printed: What the engine printed at the start of this configuration, where it did.
    """
    if live is None and logged is not None and diagnosis.class_ in FIT_CLASSES:
        yield from _logged_to_a_person(service, logged, fits)
        if printed is not None:
            yield _printed_to_a_person(service, logged, printed, fits)
    if live is not None:
        if diagnosis.class_ in FIT_CLASSES:
            yield from _by_fit(service, live.config, fits)
        if printed is not None:
            yield Candidate(actions=(SetFlag(name=printed.flag, value=str(printed.most)),), why=_engine_said(printed))
        for fix in diagnosis.fix_actions:
            yield from _typed(service, fix, diagnosis, live, fits)
    yield _by_person(service, diagnosis, live, platform)


def _by_fit(service: str, config: ServingConfig, fits: Capacity) -> Iterator[Candidate]:
    """What fits, in the order of the search, then the best move to another checkpoint or card for a person to make."""
    elsewhere: list[FitOption] = []
    for option in fits.options(service, config):
        if option.elsewhere is not None:
            elsewhere.append(option)
            moved = _moved(config, option)
            if moved:
                yield _fitting(moved, option)
        elif option.flags:
            yield _fitting(tuple(SetFlag(name=n, value=v) for n, v in option.flags.items()), option)
    if elsewhere:
        best = elsewhere[0]
        move = ForPerson(
            action="change_model_or_quantization",
            instruction=f"Serve {best.elsewhere} with: {best.line}",
            undo="serve the former checkpoint on the former hardware again",
        )
        others = tuple(f"or {o.elsewhere}: {o.fit.sentence}" for o in elsewhere[1:3])
        yield replace(_fitting((move,), best), notes=(best.note, *others))


def _moved(config: ServingConfig, option: FitOption) -> tuple[Action, ...]:
    """A move as typed actions, which policy allows by name or not at all; none where they could not say it.

    Clients go on asking by the former name. A checkpoint that stands in a mounted folder is moved by people: nobody
    knows whether the other one lies there too.
    """
    move, served = option.move, served_model(config.command, config.args)
    if move is None:
        return ()
    actions: tuple[Action, ...] = tuple(SetFlag(name=n, value=v) for n, v in option.flags.items() if n != "model")
    if move.model is not None:
        if served is None or served.startswith(("/", ".", "gs://")):
            return ()
        actions = (SetModel(model=move.model), *actions)
        if "served-model-name" not in flag_map((*config.command, *config.args)):
            actions = (*actions, SetFlag(name="served-model-name", value=served))
    if move.accelerator is not None:
        if move.cpu is None or move.memory_mib is None:
            return ()
        if config.instance_type is not None:  # the machine is another one, and that stands alone
            return _another_type(config, move) if not actions else ()
        card = SetAccelerator(accelerator=move.accelerator, cpu=move.cpu, memory_mib=move.memory_mib)
        actions = (card, *actions)
    return actions


def _another_type(config: ServingConfig, move: Move) -> tuple[Action, ...]:
    if not (move.instance_type and move.accelerator and move.cpu and move.memory_mib):
        return ()
    return (
        SetInstanceType(
            instance_type=move.instance_type,
            accelerator=move.accelerator,
            accelerator_count=config.accelerator_count,
            cpu=move.cpu,
            memory_mib=move.memory_mib,
        ),
    )


def _logged_to_a_person(service: str, logged: LoggedConfig, fits: Capacity) -> Iterator[Candidate]:
    """What fits, as exact commands for a platform that we do not change ourselves."""
    for option in fits.options(service, logged.config):
        if option.elsewhere is None and option.flags:
            fix = f"set_flag {next(iter(option.flags)).replace('-', '_')}"
            yield _fitting((_by_hand(service, logged, option.flags, fix),), option)


def _printed_to_a_person(service: str, logged: LoggedConfig, printed: Printed, fits: Capacity) -> Candidate:
    """The engine's own figure as exact commands; what the arithmetic says of it still counts."""
    flags = {printed.flag: str(printed.most)}
    after = logged.config.with_(args=with_flag(logged.config.args, printed.flag, str(printed.most)))
    hand = _by_hand(service, logged, flags, manual_task(printed))
    return Candidate(actions=(hand,), why=_engine_said(printed), fit=fits.assess(service, after))


def _engine_said(printed: Printed) -> str:
    return f"vLLM itself printed that --{printed.flag} {printed.most:,} would have fitted, {printed.asked:,} did not"


def _by_hand(service: str, logged: LoggedConfig, flags: Mapping[str, str | None], fix: str) -> ForPerson:
    args = logged.config.args
    for name, value in flags.items():
        args = with_flag(args, name, value)
    how = change_commands(logged.platform, service, logged.config.args, args)
    says = ", ".join(f"--{n} {'(removed)' if v is None else v}".strip() for n, v in flags.items())
    return ForPerson(
        action=fix,
        instruction=f"Start the server with {says}. {how.note}".strip(),
        commands=how.do,
        undo=how.undo,
    )


def _fitting(actions: tuple[Action, ...], option: FitOption) -> Candidate:
    return Candidate(
        actions=actions,
        why=option.fit.sentence,
        fit=option.fit,
        notes=(option.note,) if option.note else (),
        cost_usd_per_h=option.cost_usd_per_h,
        decode_tokens_per_s=option.decode_tokens_per_s,
        takes_away=option.takes_away,
    )


def _typed(service: str, fix: str, diagnosis: Diagnosis, live: Live, fits: Capacity) -> Iterator[Candidate]:
    words = fix.split()
    if words[0] == "set_flag" and len(words) >= 2:
        yield from _flag(words[1], words[2] if len(words) > 2 else "", diagnosis, live.config)
        return
    make = _MAKERS.get(fix if words[0] == "set_env" else words[0])
    if make is not None:
        yield from make(service, diagnosis, live, fits)


def _flag(name: str, direction: str, diagnosis: Diagnosis, config: ServingConfig) -> Iterator[Candidate]:
    value = _value_for(name, direction, diagnosis, config)
    if value is not None:
        yield Candidate(
            actions=(SetFlag(name=name.replace("_", "-"), value=value),),
            why=_reason(name, direction, diagnosis, config),
        )


def _reason(name: str, direction: str, diagnosis: Diagnosis, config: ServingConfig) -> str:
    """Say what a flag's value follows from; the title of the plan says from what to what."""
    if (name, direction) == ("max_model_len", "lower") and (most := diagnosis.number(*_ESTIMATED)):
        return f"the engine's own line names {most:,.0f} tokens as the longest request that fits"
    if (name, direction) == ("max_model_len", "up") and (asked := _asked_tokens(diagnosis)):
        now = flag_map((*config.command, *config.args)).get("max-model-len", "an unknown number of")
        return f"a request of {asked:,.0f} tokens was refused; {now} are allowed"
    return f"it is a known remedy for {diagnosis.class_}"


def _value_for(  # noqa: PLR0911 - one answer for each flag
    name: str, direction: str, diagnosis: Diagnosis, config: ServingConfig
) -> str | None:
    """Return a value that the log or the configuration gives a reason for; None where there is none."""
    if direction and direction not in TAKEN_FLAG_VALUES:
        return "" if direction in {"true", "on"} else direction
    if name == "enforce_eager":
        return ""
    if name == "max_model_len" and direction == "lower":
        return _text(diagnosis.number(*_ESTIMATED))
    if name == "max_model_len" and direction == "up":
        return _longer(diagnosis, config)
    if name == "max_num_seqs" and direction == "lower":
        now = flag_map((*config.command, *config.args)).get("max-num-seqs", "256")
        return str(max(1, int(now) // 4)) if now.isdigit() and int(now) > 1 else None
    if name == "gpu_memory_utilization" and direction == "lower":
        return _share_of_free(diagnosis)
    return None


def _longer(diagnosis: Diagnosis, config: ServingConfig) -> str | None:
    """The shortest context, in steps of 1,024 tokens, that holds the request that was refused."""
    now = flag_map((*config.command, *config.args)).get("max-model-len", "")
    asked = _asked_tokens(diagnosis)
    least = max(asked, (int(now) if now.isdigit() else 0) + 1)
    return str(math.ceil(least / 1024) * 1024) if least > 1 else None


_ESTIMATED = ("estimated_max_model_len", "estimated_max_model_len_tokens", "max_tokens")


def _asked_tokens(diagnosis: Diagnosis) -> float:
    asked = diagnosis.number("requested_tokens", "total_tokens")
    if asked is not None:
        return asked
    parts = [diagnosis.number(name) for name in ("prompt_tokens", "output_tokens", "max_tokens")]
    return sum(part for part in parts if part)


def _share_of_free(diagnosis: Diagnosis) -> str | None:
    free, total = diagnosis.number("free_gib"), diagnosis.number("total_gib")
    if not free or not total or free >= total:
        return None
    share = math.floor((free / total - 0.01) * 100) / 100
    return f"{share:.2f}" if share > 0 else None


def _text(value: float | None) -> str | None:
    return str(int(value)) if value and value >= 1 else None


def _startup_probe(service: str, diagnosis: Diagnosis, live: Live, fits: Capacity) -> Iterator[Candidate]:
    had_s = (live.config.startup_probe or Probe()).budget_s
    yield from _more_time(longer_start(service, diagnosis, live, fits, had_s=had_s, who="the probe"))


def _ready_timeout(service: str, diagnosis: Diagnosis, live: Live, fits: Capacity) -> Iterator[Candidate]:
    had_s = engine_timeout_s(live.config)
    if had_s is not None:
        yield from _more_time(longer_start(service, diagnosis, live, fits, had_s=had_s, who="the engine"))


def _more_time(found: tuple[tuple[Action, ...], str] | None) -> Iterator[Candidate]:
    if found is not None:
        yield Candidate(actions=found[0], why=found[1])


def _liveness_probe(_s: str, _d: Diagnosis, live: Live, _f: Capacity) -> Iterator[Candidate]:
    old = live.config.liveness_probe
    if old is not None:
        relaxed = old.with_(failure_threshold=max(old.failure_threshold * 3, 3), timeout_s=max(old.timeout_s, 5))
        relaxed = relaxed.with_(period_s=max(relaxed.period_s, relaxed.timeout_s))
        yield Candidate(
            actions=(SetLivenessProbe(probe=relaxed),), why="the server is busy, not dead; it gets longer to answer"
        )


def _memory(_s: str, diagnosis: Diagnosis, live: Live, _f: Capacity) -> Iterator[Candidate]:
    now = live.config.memory_mib
    used = diagnosis.number("used_mib", "memory_used_mib")
    if now is None or live.platform == "host":
        return  # a machine has the memory that it has
    for larger in (m for m in L4_SHAPES_MIB if m > max(now, used or 0)):
        cpu = max(live.config.cpu or 4, larger / 4096)
        yield Candidate(
            actions=(SetResources(cpu=float(cpu), memory_mib=larger),),
            why=f"the container needs more than its {now:,} MiB",
        )


def _scale_out(_s: str, diagnosis: Diagnosis, live: Live, _f: Capacity) -> Iterator[Candidate]:
    config = live.config
    if live.scaled_by:
        return  # the number of instances is not ours to set
    seqs = flag_map((*config.command, *config.args)).get("max-num-seqs", "")
    held = int(seqs) if seqs.isdigit() else None
    if held and config.concurrency and config.concurrency < held:
        yield Candidate(
            actions=(SetConcurrency(concurrency=held),),
            why=f"the platform queues at {config.concurrency} requests, the server takes {held} (--max-num-seqs)",
        )
    if live.platform == "ec2":  # one named machine: a second one is a person's work
        usage = diagnosis.number("kv_usage_percent")
        if held and usage is not None and usage < ROOM_PERCENT:
            yield Candidate(
                actions=(SetFlag(name="max-num-seqs", value=str(2 * held)),),
                why=f"{held} requests run at once (--max-num-seqs) on {usage:g} % of the cache, and others wait",
            )
        return
    most = config.max_instances or 1
    least = config.min_instances if live.template_scales else most + 1  # one number there
    yield Candidate(
        actions=(SetScaling(min_instances=least, max_instances=most + 1),),
        why=f"one more instance than {most}; it needs accelerator quota",
    )


def _strategy(_s: str, _d: Diagnosis, live: Live, _f: Capacity) -> Iterator[Candidate]:
    """End the wait of a new pod for the accelerator that the old one holds."""
    strategy, instances = live.config.strategy, live.config.max_instances or 1
    if strategy is None or not strategy.needs_spare(instances):
        return
    freeing = Strategy(kind="Recreate")
    if instances > 1:
        freeing = Strategy(kind="RollingUpdate", max_surge="0", max_unavailable="1")
    yield Candidate(
        actions=(SetStrategy(strategy=freeing),),
        why="the new pod waits for an accelerator that the old one holds; then the old one ends first",
    )


def _restart(_s: str, diagnosis: Diagnosis, _l: Live, _f: Capacity) -> Iterator[Candidate]:
    yield Candidate(actions=(Restart(),), why=f"a fresh start clears {diagnosis.class_}; it does not remove the cause")


_MAKERS: dict[str, Callable[[str, Diagnosis, Live, Capacity], Iterator[Candidate]]] = {
    f"set_env {READY_TIMEOUT}": _ready_timeout,
    "increase_startup_probe": _startup_probe,
    "relax_liveness_probe": _liveness_probe,
    "increase_memory_limit": _memory,
    "scale_out": _scale_out,
    "set_strategy": _strategy,
    "restart": _restart,
}


def _by_person(service: str, diagnosis: Diagnosis, live: Live | None, platform: str | None) -> Candidate:
    fix = diagnosis.fix_actions[0] if diagnosis.fix_actions else "collect_container_logs"
    text, commands, undo = instruction(
        fix,
        service,
        diagnosis.class_,
        live.platform if live else platform,
        log_path=live.log_path if live else None,
        config=live.config if live else None,
        at=live.cluster_object if live else "",
    )
    return Candidate(
        actions=(ForPerson(action=fix, instruction=text, commands=commands, undo=undo),),
        why="this is for a person to do; we say what, and watch for the service to be healthy",
    )
