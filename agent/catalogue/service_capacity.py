"""The arithmetic bound to the watched services: which model, accelerator and version each of them runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import floor

from agent.catalogue.load_fit import FitCatalogue
from agent.catalogue.load_platforms import PlatformCatalogue
from agent.catalogue.service_price import RENTED_ON, move_to, running_shape, typed, usual_size
from agent.core.plan.action import SetInstanceType
from agent.core.plan.capacity import ContainerFit, FitOption, Move, StartUp
from agent.core.plan.plan import FitSummary
from agent.core.plan.proof import ProofFigure
from agent.core.service.container_args import flag_map, served_model, server_args
from agent.core.service.services import Service, Services
from agent.core.service.serving import ServingConfig
from agent.errors import InputRejected
from agent.fit.advice.advice import Demand, Option, Reach
from agent.fit.advice.advise import SLOWEST_TOKENS_PER_S, advise
from agent.fit.advice.alternatives import Market
from agent.fit.advice.cost import compare, cost_of, users_at_once
from agent.fit.advice.tradeoff import Tradeoff
from agent.fit.allocation import name_allocation, printed_size
from agent.fit.assessment import Setup
from agent.fit.bounds import GIB, Bounds
from agent.fit.checkpoint.checkpoint import ModelProfile
from agent.fit.flags.flag_text import flag_line, flag_settings
from agent.fit.flags.flags import Flags, parse_flags
from agent.fit.host_memory import HostNeed, host_need
from agent.fit.memory.predict import predict
from agent.fit.model_and_hardware import ModelFacts
from agent.fit.needs import Needs
from agent.fit.report import FitReport
from agent.fit.speed.calibration import Measurement
from agent.fit.speed.price import Shape
from agent.fit.speed.speed import first_token_s
from agent.fit.speed.startup import startup_time
from agent.presentation.fit_text import fit_sentence

MIB = 2**20
SPARE_BYTES = 512 * MIB  # more than any calibrated term was ever off (facts of the fit, section 4)


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting(Setup):
    """What a configuration of a service means to the arithmetic, and what its owner needs."""

    needs: Needs


class ServiceCapacity:
    """Answers what planning asks of the arithmetic; a question it cannot answer is ``not computed``, never a guess.

    Args:
        services: The watched services.
        fit: Models, accelerators and versions.
        platforms: Prices, load rates and probe limits.
        profiles: Tells the profiles that were read from checkpoints; one of them wins over the bundled entry.
        measurements: Tells what was measured here, for the speed of one request.
    """

    def __init__(
        self,
        services: Services,
        fit: FitCatalogue,
        platforms: PlatformCatalogue,
        *,
        profiles: Callable[[], tuple[ModelProfile, ...]] = tuple,
        measurements: Callable[[], tuple[Measurement, ...]] = tuple,
    ) -> None:
        self._services = services
        self._profiles = profiles
        self._measurements = measurements
        self._fit = fit
        self._platforms = platforms

    def assess(self, service: str, config: ServingConfig) -> FitSummary:
        """Return what the arithmetic says of a configuration."""
        try:
            s = self.setting(service, config)
            report = predict(s.model, s.accelerator, s.count, s.flags, s.rules)
        except InputRejected as error:
            return FitSummary(sentence=f"fit: not computed ({error.cause})")
        return _with_speed(report, s, s.flags)

    def report(self, service: str, config: ServingConfig) -> FitReport:
        """Return the whole prediction: whether it starts. What the owner needs beyond that is a matter of the search.

        Raises:
            InputRejected: Model, accelerator, version or flags are not known to the arithmetic.
        """
        s = self.setting(service, config)
        return predict(s.model, s.accelerator, s.count, s.flags, s.rules)

    def setting(self, service: str, config: ServingConfig) -> Setting:
        """Look up what a configuration means.

        Raises:
            InputRejected: As in ``report``.
        """
        watched = self._services.service(service)
        words = server_args(config.command, config.args)
        flags = parse_flags((*environment_args(config), *flag_args(words)))
        return Setting(
            model=self._model(watched, config),
            accelerator=self._fit.accelerator(config.accelerator or watched.accelerator),
            count=config.accelerator_count if config.accelerator is not None else watched.accelerator_count,
            flags=flags,
            rules=self._fit.rules(watched.vllm or _image_version(config.image)),
            needs=Needs(context_tokens=watched.needs.context, users=watched.needs.users or 1),
            measurements=self._measurements(),
        )

    def _model(self, watched: Service, config: ServingConfig) -> ModelFacts:
        """The checkpoint's own profile where somebody read it, otherwise the bundled entry of its name."""
        name = self._model_name(watched, config)
        served = served_model(config.command, config.args)
        places = {name} if name != watched.model else {name, watched.checkpoint, watched.checkpoint_uri, served}
        for profile in self._profiles():
            if profile.name in places or profile.source.rstrip("/") in places:
                return profile.facts
        return self._fit.models.find(name)

    def _model_name(self, watched: Service, config: ServingConfig) -> str:
        """A path that is served is the model that services.toml names; another id is taken at its word."""
        served = served_model(config.command, config.args)
        if served is None or served.startswith(("/", "gs://", ".")) or served == watched.checkpoint:
            return watched.model
        return served

    def container(self, service: str, config: ServingConfig) -> ContainerFit:
        """Return whether the container's memory suffices for the load, or what would have to be known."""
        try:
            setting = self.setting(service, config)
            need = host_need(setting, files_in_memory=self._in_memory(service, config, setting))
        except InputRejected as error:
            return ContainerFit(sentence=f"container memory: not computed ({error.cause})")
        return container_fit(need, config.memory_mib)

    def _in_memory(self, service: str, config: ServingConfig, setting: Setting) -> Bounds:
        """What of the checkpoint's files lies in memory: on Cloud Run, what is downloaded; an image's files do not.

        Source: https://cloud.google.com/run/docs/container-contract#filesystem, read 2026-11-22.
        """
        size = setting.model.checkpoint_bytes or 0
        served = served_model(config.command, config.args) or ""
        mounted = any(served.startswith(f"{v.mount_path.rstrip('/')}/") for v in config.volumes if v.bucket)
        if self._services.service(service).platform != "cloud_run" or mounted or served.startswith("gs://"):
            return Bounds.exactly(0)
        return Bounds(low=0, best=0, high=size) if served.startswith("/") else Bounds.exactly(size)

    def misses(self, service: str, config: ServingConfig) -> str:
        """Return which need of the owner a configuration misses, or nothing; what is not known misses none."""
        needs = self._services.service(service).needs
        length = _length(config)
        if needs.context is not None and length is not None and length < needs.context:
            return f"{length:,} tokens of context, {needs.context:,} are needed"
        speed = self.speed(service, config)
        needed = needs.tokens_per_s or SLOWEST_TOKENS_PER_S
        return f"{speed[0]:.1f} tokens/s, {needed:g} are needed" if speed and speed[0] < needed else ""

    def takes_away(
        self,
        service: str,
        before: ServingConfig,
        after: ServingConfig,
        *,
        usd_per_h: tuple[float | None, float | None],
    ) -> str:
        """Return in one line what a change takes away; of an unknown model, context and price alone."""
        try:
            old, new = self.setting(service, before), self.setting(service, after)
            demand, shapes = self._demand(service, before, old), self._platforms.shapes
            report, then = old.predict(demand.needs), new.predict(demand.needs)
            held = then.max_concurrency if then.fits else None
            trade = compare(
                old,
                new,
                now=cost_of(old, report, before=old, demand=demand, shapes=shapes),
                then=cost_of(new, then, before=old, demand=demand, shapes=shapes),
                demand=demand,
                users=users_at_once(report) if report.fits and then.fits else None,
            )
            stated = new.flags.max_num_seqs is not None or after.concurrency is not None
            let_in = (_let_in(before, report), _let_in(after, then) if stated else None)
            trade = replace(trade, let_in=let_in, held=None if held is None else floor(held[0]))
        except InputRejected:
            trade = Tradeoff(context_tokens=(_length(before), _length(after)))
        return replace(trade, usd_per_h=usd_per_h).line

    def cost_usd_per_h(self, service: str, config: ServingConfig) -> float | None:
        """Return the price of one instance's running hour."""
        shape = self.shape(service, config)
        return shape.usd_per_h if shape is not None else None

    def shape(self, service: str, config: ServingConfig) -> Shape | None:
        """Return what a configuration runs on, at the price of its own CPUs and memory; None where nobody knows."""
        watched = self._services.watched(service)
        return None if watched is None else running_shape(watched, config, self._platforms.shapes)

    def speed(self, service: str, config: ServingConfig) -> tuple[float, float] | None:
        """Return the bounds of the decode speed of one sequence; None where nobody knows."""
        try:
            return self.setting(service, config).speed()
        except InputRejected:
            return None

    def decode_tokens_per_s(self, service: str, config: ServingConfig) -> float | None:
        """Return the expected decode speed of one sequence: the middle of the bounds, geometrically."""
        speed = self.speed(service, config)
        return (speed[0] * speed[1]) ** 0.5 if speed is not None else None

    def options(self, service: str, config: ServingConfig) -> tuple[FitOption, ...]:
        """Return ranked changes that fit, the least change first: flags, then checkpoints, then hardware.

        Where the present configuration should fit and failed all the same, an option must leave room to spare.
        """
        try:
            setting = self.setting(service, config)
            found = advise(setting, self._demand(service, config, setting), self._market())
        except InputRejected:
            return ()
        moves = (self._move(service, setting, option) for option in found.options)
        return tuple(_option(setting, option, move) for option, move in zip(found.options, moves, strict=True))

    def _move(self, service: str, setting: Setting, option: Option) -> Move | None:
        if option.reach is Reach.FLAGS or option.count != setting.count:
            return None
        model = option.model if option.model != setting.model.name else None
        if option.accelerator == setting.accelerator.name:
            return Move(model=model)
        where = (self._services.service(service), option.accelerator, option.count)
        return move_to(*where, self._platforms.shapes, model=model)

    def usual_shape(self, service: str, accelerator: str) -> tuple[float, int] | None:
        """Return the CPUs and MiB that an accelerator is usually rented with where a service runs; None if unknown.

        Raises:
            InputRejected: The service is not watched.
        """
        return usual_size(self._services.service(service), accelerator, self._platforms.shapes)

    def instance_type(self, service: str, name: str) -> SetInstanceType | None:
        """Return what a type of machine has where a service runs; None if unknown. Raises as ``usual_shape``."""
        return typed(self._services.service(service), name, self._platforms.shapes)

    def _demand(self, service: str, config: ServingConfig, setting: Setting) -> Demand:
        watched = self._services.service(service)
        now = self.report(service, config)
        return Demand(
            needs=setting.needs,
            tokens_per_s=watched.needs.tokens_per_s,
            usd_per_h=watched.needs.usd_per_h,
            spare_bytes=_more_room(now) if now.fits else 0,
            host_bytes=config.memory_mib * MIB if config.memory_mib is not None else None,
            platform=RENTED_ON.get(watched.platform),
        )

    def _market(self) -> Market:
        models = {facts.name: facts for facts in self._fit.models.by_name.values()}
        return Market(models=tuple(models.values()), accelerators=self._fit.accelerators, shapes=self._platforms.shapes)

    def allocation(self, service: str, config: ServingConfig | None, gib: float) -> str | None:
        """Name the tensor or buffer of a failed size."""
        try:
            model = self._fit.models.find(self._services.service(service).model)
            flags = _flags_where_read(config) if config is not None else None
            named = name_allocation(printed_size(f"{gib:.2f} GiB"), model, flags=flags)
        except InputRejected:
            return None
        return f"{gib:.2f} GiB is {named[0].formula}: {named[0].why}" if named else None

    def start_up(self, service: str, config: ServingConfig, *, seen_s: float | None) -> StartUp | None:
        """Return the slow end of the start: what was seen, or size by load rate, with the sum."""
        seen = StartUp(seconds=seen_s) if seen_s else None
        try:
            s = self.setting(service, config)
        except InputRejected:
            return seen
        size, warm_up, eager = s.model.checkpoint_bytes, self._platforms.warm_up, bool(s.flags.enforce_eager)
        rate = self._platforms.load_rates.get("gcs-fuse") if any(v.bucket for v in config.volumes) else None
        computed = startup_time(size, rate.bytes_per_s if rate else None, warm_up, eager=eager)
        if computed is None or rate is None or size is None or (seen is not None and seen.seconds > computed.high):
            return seen
        compiled = 0 if eager else warm_up.compile_s.high
        load_s = computed.high - compiled - warm_up.rest_s.high
        slowest = f"{size / 1e9:.1f} GB at {rate.bytes_per_s.low / 1e6:.1f} MB/s: {load_s:,} s"
        says = f"{slowest}; torch.compile: {compiled:,} s; the rest: {warm_up.rest_s.high:,} s"
        return StartUp(seconds=float(computed.high), says=says)


def _more_room(failed: FitReport) -> int:
    """The room that an option must leave: more than what failed had, for it should have fitted."""
    if failed.total_bytes is None or failed.required_bytes is None:
        return SPARE_BYTES
    had = failed.total_bytes.best - failed.required_bytes.best
    return max(SPARE_BYTES, had + SPARE_BYTES // 2)


def _option(setting: Setting, option: Option, move: Move | None) -> FitOption:
    speed = option.cost.decode_tokens_per_s
    moved = option.reach is not Reach.FLAGS
    return FitOption(
        flags=flag_settings(setting.flags, option.flags),
        fit=fit_summary(option.fit) if moved else _with_speed(option.fit, setting, option.flags),
        note="; ".join((*option.cost.quality, option.note)),
        cost_usd_per_h=option.cost.usd_per_h,
        decode_tokens_per_s=(speed[0] * speed[1]) ** 0.5 if speed is not None else None,
        elsewhere=f"{option.model} on {option.count} x {option.accelerator}" if moved else None,
        line=flag_line(replace(option.flags, others=tuple(o for o in option.flags.others if o.name != "model"))),
        move=move,
        takes_away=option.tradeoff.line,
    )


def _with_speed(report: FitReport, setting: Setting, flags: Flags) -> FitSummary:
    """Return the report with what a completion will be held against: tokens per second, seconds to the first one."""
    rate = setting.with_flags(flags).speed()
    first = first_token_s(setting.model, setting.accelerator, flags, setting.rules)
    word = fit_summary(replace(report, decode_tokens_per_s=rate) if rate is not None else report)
    if first is None or word.report is None:
        return word
    ranges = {**_ranges(word.report), "first_token_s": [round(first[0], 4), round(first[1], 4)]}
    return word.with_(report={**word.report, "ranges": ranges})


def _ranges(report: Mapping[str, object]) -> Mapping[str, object]:
    found = report["ranges"]
    assert isinstance(found, Mapping)
    return found


def _let_in(config: ServingConfig, report: FitReport) -> int | None:
    """Return how many requests platform and server take at once."""
    return min((n for n in (config.concurrency, report.max_num_seqs) if n is not None), default=None)


def _length(config: ServingConfig) -> int | None:
    given = flag_map((*config.command, *config.args)).get("max-model-len", "")
    return int(given) if given.isdecimal() else None


def environment_args(config: ServingConfig) -> tuple[str, ...]:
    """Return the one variable that vLLM's memory rules depend on, as the flag parser reads it before the flags."""
    return tuple(f"{e.name}={e.value}" for e in config.env if e.name == "VLLM_CPU_KVCACHE_SPACE" and e.value)


def _flags_where_read(config: ServingConfig) -> Flags | None:
    """Return the flags; None where a shell line or a script hides them, which says nothing against a size's name."""
    try:
        words = server_args(config.command, config.args)
    except InputRejected:
        return None
    return parse_flags(flag_args(words))


def flag_args(args: tuple[str, ...]) -> tuple[str, ...]:
    """Return the container's words without program and model: what vLLM's own parser reads as flags."""
    first = next((n for n, word in enumerate(args) if word.startswith("-")), len(args))
    return args[first:]


def _image_version(image: str) -> str | None:
    tag = image.rpartition(":")[2] if ":" in image.rpartition("/")[2] else ""
    version = tag.removeprefix("v").split("-")[0].split("+")[0]
    return version if version[:1].isdigit() and "." in version else None


def fit_summary(report: FitReport) -> FitSummary:
    """Return the report with one sentence for a person."""
    return FitSummary(
        fits=report.fits, reason=report.reason.value, sentence=fit_sentence(report), report=report.to_contract()
    )


def container_fit(need: HostNeed, memory_mib: int | None) -> ContainerFit:
    """Say whether a need is within a container's limit, MiB; None where the limit is not known."""
    if need.unknown:
        return ContainerFit(sentence=f"container memory: not computed ({need.unknown})")
    if memory_mib is None:
        return ContainerFit(
            sentence="container memory: the limit of the container, or the size of the host, is not known"
        )
    fits, total = need.fits(memory_mib * MIB), need.total
    word = {True: "suffices", False: "does not suffice", None: "may or may not suffice"}[fits]
    size = f"{total.low / GIB:.1f} to {total.high / GIB:.1f} GiB"
    limit = ProofFigure(name="Container memory", value=f"{memory_mib / 1024:.1f} GiB", source="the configuration")
    parts = tuple(
        ProofFigure(name=p.name, value=f"{p.size.low / GIB:.1f} to {p.size.high / GIB:.1f} GiB", source=p.source)
        for p in need.parts
    )
    sentence = f"container memory: {word}, the load takes {size} of {memory_mib / 1024:.1f} GiB"
    return ContainerFit(fits=fits, sentence=sentence, figures=(limit, *parts))
