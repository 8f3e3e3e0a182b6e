"""Which server a sweep measures: a watched service as it runs, or an address with what the person says of it."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agent.app import App
from agent.app.fit_answers import FitAnswers
from agent.core.service.container_args import flag_map, served_model, server_args, with_flag
from agent.core.service.serving import ServingConfig
from agent.core.sweep.planning import Known
from agent.core.sweep.provenance import Limits
from agent.core.sweep.sweep import Subject
from agent.errors import DependencyFailed, InputRejected
from agent.fit.flags.flags import parse_flags
from agent.fit.question import question_from
from agent.fit.report import FitReport
from agent.stages.grant_sweep import is_here

ReportOf = Callable[[int | None], FitReport]


def of_url(asked: Mapping[str, Any], redact: Callable[[str], str]) -> tuple[Subject, ReportOf | None]:
    """Return the server at an address, and the arithmetic for a context where model and accelerator are known.

    Args:
        asked: ``url`` and ``model``, and where the person says them ``served_model``, ``tokenizer``, ``flags``,
            ``vllm``, ``accelerator``, ``count``, ``api_key_name``.
        redact: Takes secrets out.

    Raises:
        InputRejected: The address is none, or what is said of the server cannot be read.
    """
    model, accelerator = str(asked["model"]), asked.get("accelerator") or ""
    subject = Subject(
        endpoint=endpoint_of(str(asked["url"])),
        model=model,
        served_model=asked.get("served_model") or model,
        tokenizer=tokenizer_of(asked.get("tokenizer"), model),
        flags=redact(asked["flags"]) if asked.get("flags") else None,
        vllm=asked.get("vllm") or "",
        accelerator=accelerator,
        accelerator_count=int(asked.get("count") or 1),
        key_name=asked.get("api_key_name") or "",
    )
    if not accelerator:
        return subject, None
    answers = FitAnswers.open()

    def report(context: int | None) -> FitReport:
        words = [asked.get("flags") or "", *([f"--max-model-len {context}"] if context else [])]
        row = {key: asked.get(key) for key in ("model", "accelerator", "count", "vllm")}
        return answers.fit(question_from({**row, "flags": " ".join(words)}))

    return subject, report


def of_service(
    app: App, name: str, asked: Mapping[str, Any], redact: Callable[[str], str]
) -> tuple[Subject, ReportOf | None]:
    """Return a watched service as the platform shows it now.

    Args:
        app: Platforms and arithmetic.
        name: Of the service.
        asked: What the person says otherwise: ``url``, ``served_model``, ``tokenizer``.
        redact: Takes secrets out.

    Raises:
        InputRejected: It is not watched, not deployed, or nobody knows its address.
        DependencyFailed: The platform did not answer.
    """
    watched, platform = app.services.service(name), app.environment.platform_of(name)
    if platform is None:
        raise InputRejected(
            f"service {name!r} was not measured", why="PLATFORM does not reach it from here", hint="set PLATFORM"
        )
    live = platform.describe(name)
    config, url = live.config, asked.get("url") or live.url
    if not url:
        raise InputRejected(
            f"service {name!r} was not measured", why="its platform names no address", hint="give it: --url URL"
        )
    words, notes = _words(config)
    served = served_model(config.command, config.args) or watched.model
    subject = Subject(
        service=name,
        endpoint=endpoint_of(url),
        model=watched.model,
        served_model=asked.get("served_model") or flag_map(words).get("served-model-name", "").split(" ")[0] or served,
        tokenizer=tokenizer_of(asked.get("tokenizer"), watched.checkpoint_uri, watched.model),
        flags=redact(shlex.join(words)) if words or not notes else None,
        vllm=watched.vllm or "",
        platform=watched.platform,
        region=watched.location or "",
        accelerator=config.accelerator or watched.accelerator,
        accelerator_count=config.accelerator_count,
        instances=config.max_instances
        if config.max_instances and config.max_instances == config.min_instances
        else None,
        image=config.image,
        revision=live.latest_ready_revision or "",
        limits=Limits(platform_concurrency=_let_through(config)),
        notes=notes,
    )
    return subject, lambda context: _of_config(app, name, config, context)


def _of_config(app: App, name: str, config: ServingConfig, context: int | None) -> FitReport:
    """Return the fit with the computed speed of one request and the price of all instances that may serve."""
    from agent.app.catalogues import read_capacity

    longer = config.with_(args=with_flag(config.args, "max-model-len", str(context))) if context else config
    capacity = read_capacity(app.services, app.settings)
    price = capacity.cost_usd_per_h(name, longer)
    return replace(
        capacity.report(name, longer),
        decode_tokens_per_s=capacity.speed(name, longer),
        cost_usd_per_h=price * (config.max_instances or 1) if price is not None else None,
    )


def _words(config: ServingConfig) -> tuple[tuple[str, ...], tuple[str, ...]]:
    try:
        return server_args(config.command, config.args), ()
    except InputRejected as error:
        return (), (error.cause,)


def _let_through(config: ServingConfig) -> int | None:
    """How many requests the platform lets through at once: to all instances together."""
    return config.concurrency * (config.max_instances or 1) if config.concurrency else None


def known_of(subject: Subject, report_of: ReportOf | None, contexts: tuple[int, ...]) -> tuple[Subject, Known]:
    """Return what the arithmetic knows of a server, and the server with its limits and what is not known.

    Args:
        subject: The server.
        report_of: The fit for a context, None for the server as it is; None where nothing is known.
        contexts: Of the cells.
    """
    if report_of is None:
        return _by_flags(subject, "memory and speed are not predicted: say --accelerator and --flags of the server")
    try:
        whole = report_of(None)
        by_context = {context: _held(report_of, context, whole) for context in contexts}
    except (InputRejected, DependencyFailed) as error:
        return _by_flags(subject, f"memory and speed are not predicted: {error.cause}")
    tokens = whole.kv_capacity_tokens
    limits = subject.limits.with_(
        max_num_seqs=whole.max_num_seqs,
        max_num_batched_tokens=whole.max_num_batched_tokens,
        max_model_len=whole.max_model_len,
        kv_tokens=tokens.best if tokens is not None and tokens.best > 0 else None,
        kv_from="fit" if tokens is not None else "",
    )
    known = Known(
        limits=limits,
        full_requests=by_context,
        tokens_per_s=whole.decode_tokens_per_s,
        usd_per_h=whole.cost_usd_per_h,
    )
    return subject.with_(limits=limits), known


def _by_flags(subject: Subject, note: str) -> tuple[Subject, Known]:
    """Return what the flags alone say."""
    said = parse_flags(subject.flags or "")
    limits = subject.limits.with_(
        max_num_seqs=said.max_num_seqs,
        max_num_batched_tokens=said.max_num_batched_tokens,
        max_model_len=said.max_model_len if isinstance(said.max_model_len, int) and said.max_model_len > 0 else None,
    )
    return subject.with_(limits=limits, notes=(*subject.notes, note)), Known(limits=limits)


def _held(report_of: ReportOf, context: int, whole: FitReport) -> float | None:
    """How many requests of a context the cache holds; sliding windows make it no mere quotient."""
    if whole.max_model_len is not None and context > whole.max_model_len:
        return None
    at_once = report_of(context).max_concurrency
    return at_once[1] if at_once is not None else None


def refuse_watched_port(app: App, endpoint: str) -> None:
    """Refuse an address that is a watched service of this machine: to load it wants the grant of that service.

    Raises:
        InputRejected: It is one.
        DependencyFailed: A record of this machine's servers cannot be read.
    """
    from agent.app.host_environment import service_at

    parts = urlsplit(endpoint)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    name = service_at(app.settings, port) if is_here(endpoint) else None
    if name is not None:
        raise InputRejected(
            "no sweep was planned",
            why=f"{endpoint} is the watched service {name!r}, whose approvers decide",
            hint=f"PLATFORM=host sre-agent sweep --service {name} --url {endpoint}",
        )


def endpoint_of(url: str) -> str:
    """Return scheme, host and port of an address.

    Raises:
        InputRejected: It is no such address, or holds more than that.
    """
    why = "want http://HOST[:PORT] or https://HOST[:PORT]"
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError as error:
        raise InputRejected("the address was not read", why=str(error), hint=why) from error
    extra = parts.username or parts.password or parts.query or parts.fragment
    if (
        parts.scheme not in {"http", "https"}
        or not parts.hostname
        or extra
        or parts.path.rstrip("/") not in {"", "/v1"}
    ):
        raise InputRejected("the address was not read", why="it is no plain address of a server", hint=why)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}"


def tokenizer_of(said: str | None, *places: str) -> str:
    """Return where the tokenizer is: as the person says, a folder of this machine, or a Hugging Face id."""
    if said:
        return str(Path(said).absolute()) if Path(said).exists() else said
    folder = next((place for place in places if Path(place).is_dir()), None)
    return str(Path(folder).absolute()) if folder is not None else places[-1]
