"""Measurements of this installation, read from sweeps, start-up logs and verified incidents."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent.core.incident.incident import Incident
from agent.core.sweep.cell import Cell, Outcome
from agent.errors import InputRejected
from agent.fit.flags.flags import Flags, parse_flags
from agent.fit.speed.calibration import Kind, Measurement, minor
from agent.fit.speed.speed import bandwidth_share

if TYPE_CHECKING:
    from agent.app.fit_answers import FitAnswers
    from agent.fit.model_and_hardware import ModelFacts
    from agent.settings import Settings

GIB = 2**30
LOG_BYTES = 64 * 2**20
LOADED = "weights_load_s"
"""The field of the failure catalogue that reads how long the weights took."""
SHORT_TOKENS = 4_096
"""Context up to which a cell tells the share of the bandwidth: reading the KV cache of a longer one costs time too."""

Printed = Mapping[str, float | str]
"""Figures of a start-up log by name."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What one source measured on, with the names looked up.

    Attributes:
        answers: Looked the names up.
        facts: The model.
        accelerator: Contract name.
        vllm: Version.
        at: When, ISO.
        source: Names it for people.
        identity: What makes it the same source under another name; empty where ``source`` does.
    """

    answers: FitAnswers
    facts: ModelFacts
    accelerator: str
    vllm: str
    at: str
    source: str
    identity: str = ""

    @classmethod
    def look_up(
        cls, answers: FitAnswers, model: str, accelerator: str, *, vllm: str, at: str, source: str, identity: str = ""
    ) -> Origin:
        """Look the names up.

        Raises:
            InputRejected: The model or the accelerator is not known.
        """
        facts, card = answers.find_model(model), answers.catalogue.accelerator(accelerator)
        return cls(
            answers=answers, facts=facts, accelerator=card.name, vllm=vllm, at=at, source=source, identity=identity
        )

    def made(self, kind: Kind, value: float, *, storage: str = "") -> Measurement:
        """Return one figure of it."""
        version, model = minor(self.vllm), self.facts.name
        said = f"{kind.value}|{model}|{self.accelerator}|{version}|{storage}|{self.identity or self.source}"
        return Measurement(
            id=f"m-{hashlib.sha256(said.encode()).hexdigest()[:10]}",
            kind=kind,
            family=self.facts.family,
            accelerator=self.accelerator,
            vllm=version,
            storage=storage,
            value=value,
            at=self.at,
            model=model,
            source=self.source,
        )

    def share(self, line: str, tokens_per_s: float) -> Iterator[Measurement]:
        """Return the share of the bandwidth that one request came to, where card and flags say it.

        Raises:
            InputRejected: A flag or the version is not known.
        """
        card, rules = self.answers.catalogue.accelerator(self.accelerator), self.answers.catalogue.rules(self.vllm)
        value = bandwidth_share(self.facts, card, _flags(line), rules, tokens_per_s)
        if value is not None:
            yield self.made(Kind.BANDWIDTH_SHARE, value)


def sweep_measurements(folder: Path, answers: FitAnswers) -> list[Measurement]:
    """Return what a sweep's folder tells.

    Raises:
        InputRejected: It holds no sweep, or no cell that tells anything.
    """
    from agent.adapters.load.sweep_folder import read_cells

    found = list(from_cells(read_cells(folder), answers))
    if not found:
        raise InputRejected(
            f"the sweep {str(folder)!r} tells nothing",
            why=f"no whole cell of one request and at most {SHORT_TOKENS} tokens names accelerator, flags and version",
            hint="sweep with --concurrency 1 and a service of services.toml",
        )
    return found


def keep_measurements(settings: Settings, cells: Sequence[Cell]) -> int:
    """Add what a finished sweep tells to the measurements of this installation; return how many are new.

    Raises:
        InputRejected: A model, accelerator or flag of the sweep is not known.
        DependencyFailed: The measurements cannot be written.
    """
    from agent.app.fit_answers import FitAnswers
    from agent.app.measurements import measurement_store

    return measurement_store(settings).add(list(from_cells(cells, FitAnswers.open())))


def from_cells(cells: Sequence[Cell], answers: FitAnswers) -> Iterator[Measurement]:
    """Return the share of the bandwidth of each whole cell with one request and a short context.

    Raises:
        InputRejected: A model, accelerator or flag of the sweep is not known.
    """
    for cell in cells:
        made, found = cell.provenance, cell.measured
        alone = cell.planned.concurrency == 1 and cell.planned.context_tokens <= SHORT_TOKENS
        if cell.outcome is not Outcome.MEASURED or found is None or found.itl_s is None or not alone:
            continue
        if not (made.accelerator and made.vllm and made.flags is not None) or found.itl_s.p50 <= 0:
            continue
        source = f"sweep {made.sweep}, {cell.id}, {made.driver} {made.driver_version}, image {made.image or 'unknown'}"
        at = found.began_at.isoformat()
        origin = Origin.look_up(answers, made.model, made.accelerator, vllm=made.vllm, at=at, source=source)
        yield from origin.share(made.flags, 1 / found.itl_s.p50)


def from_incident(incident: Incident, answers: FitAnswers) -> Iterator[Measurement]:
    """Return what the verification of an incident's change saw: the speed of its completion, and activations.

    Raises:
        InputRejected: Nothing was observed, or its model, accelerator or flags are not known.
    """
    seen = incident.verification.observed if incident.verification is not None else None
    if seen is None or not (seen.model and seen.accelerator and seen.vllm):
        raise InputRejected(
            f"incident {incident.id!r} was not read",
            why="no start-up was observed that names its model, accelerator and version",
            hint="take one whose change was verified: sre-agent incidents list",
        )
    figures = {each.name: each.observed for each in seen.figures}
    source, at = f"incident {incident.id}, revision {seen.revision}", seen.at.isoformat()
    origin = Origin.look_up(answers, seen.model, seen.accelerator, vllm=seen.vllm, at=at, source=source)
    if "decode_tokens_per_s" in figures and seen.flags is not None:
        yield from origin.share(seen.flags, figures["decode_tokens_per_s"])
    if "peak_activation_gib" in figures:
        yield origin.made(Kind.ACTIVATIONS, figures["peak_activation_gib"] * GIB)


@dataclass(frozen=True, kw_only=True)
class Started:
    """What a start-up log was of.

    Attributes:
        model: As the catalogue or an added profile names it.
        accelerator: Any of its names.
        vllm: Version; what the log prints where it is None.
        storage: Where the checkpoint was read from; empty leaves the load rate out.
    """

    model: str
    accelerator: str
    vllm: str | None = None
    storage: str = ""


def log_measurements(path: Path, of: Started, answers: FitAnswers, *, at: str) -> list[Measurement]:
    """Return what a start-up log prints: activations, and the load rate where its storage is named.

    Args:
        path: Of the log.
        of: What started.
        answers: Looks names up.
        at: When it is read, ISO.

    Raises:
        InputRejected: The log cannot be read or prints neither, or a name is not known.
    """
    printed, digest = _read_log(path)
    vllm = of.vllm or str(printed.get("vllm") or "")
    source = f"log {path.name}, sha256 {digest[:12]}"
    origin = Origin.look_up(answers, of.model, of.accelerator, vllm=vllm, at=at, source=source, identity=digest)
    load_s, activations = printed.get(LOADED), printed.get("peak_activation_gib")
    size, found = origin.facts.checkpoint_bytes, []
    if isinstance(activations, int | float):
        found.append(origin.made(Kind.ACTIVATIONS, activations * GIB))
    if isinstance(load_s, int | float) and load_s > 0 and of.storage and size:
        found.append(origin.made(Kind.LOAD_RATE, size / load_s, storage=of.storage))
    if not found or not vllm:
        raise InputRejected(
            f"log {path.name!r} was not read",
            why="it prints no version"
            if found
            else "it prints no peak of activations, nor a load from a named storage",
            hint="give --vllm, and --storage for the load rate",
        )
    return found


def _read_log(path: Path) -> tuple[Printed, str]:
    from agent.app.catalogues import failures
    from agent.failures.measure import measure

    read = (signature.fields for signature in failures().signatures if LOADED in signature.fields)
    patterns = {**failures().printed, LOADED: next(read)[LOADED]}

    try:
        with path.open("rb") as file:
            raw = file.read(LOG_BYTES + 1)
    except OSError as error:
        raise InputRejected(f"log {str(path)!r} was not read", why=str(error), hint="give a start-up log") from error
    if len(raw) > LOG_BYTES:
        raise InputRejected(
            f"log {str(path)!r} was not read", why=f"it has more than {LOG_BYTES} bytes", hint="give the start alone"
        )
    values = measure(patterns, raw.decode("utf-8", "replace").splitlines(), 0).values
    figures = {name: value for name, value in values.items() if isinstance(value, int | float | str)}
    return figures, hashlib.sha256(raw).hexdigest()


def _flags(line: str) -> Flags:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise InputRejected(
            f"flags {line!r} were not read", why=str(error).lower(), hint="correct the quotes"
        ) from error
    first = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    return parse_flags(words[first:])
