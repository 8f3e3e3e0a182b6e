"""The data of the memory prediction: models, accelerators and vLLM versions, read whole, checked, and found by name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

from agent.catalogue.catalogue_file import Mistakes, read_table
from agent.catalogue.fit_entries import (
    QuantScheme,
    accelerator_from_entry,
    flag_versions,
    is_publishers_own,
    model_from_entry,
    scheme_from_entry,
    sibling_of,
    variant_of,
    version_from_entry,
)
from agent.catalogue.model_names import after_training, shape_of, tuned_from
from agent.catalogue.stored_as_named import stored_as_named
from agent.errors import InputRejected
from agent.fit.bounds import Bounds
from agent.fit.flags.flags import Flags, typed_flag_names
from agent.fit.memory.weights import stored_bytes
from agent.fit.model_and_hardware import AcceleratorFacts, ModelFacts
from agent.fit.version_rules import FlagVersions, VersionRules

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(?:(\d+)|x))?((?:\.?(?:post|dev|rc|a|b)\d*|\.\d+|[-+ ].*)*)")
"""Two or three numbers, then what builds append: 0.10.1.1, 0.19.2rc1.dev134+gfe9c3d6c5, 0.8.5.post1."""

_IS_EARLY = re.compile(r"\.?(?:dev|rc|a|b)")
"""Built before the release whose number it carries."""

_OF_A_CHECKOUT = re.compile(r"(?:dev\d+\+|-)g[0-9a-f]{7}|\+(?!cu\d|rocm|cpu|xpu|tpu|precompiled)\w")
"""A build that names its commit or its maker, not a platform: it may hold what the release of its number lacks."""

_COMMITS, _LATE_COMMITS = re.compile(r"\.dev(\d+)"), 20_000
"""What setuptools-scm counts where a checkout has no tags; 0.1.dev20073 laid its cache out as 0.28 does."""
_FIRST_RELEASE = (0, 2)
"""A checkout without tags is built as 0.1.dev20073, whichever release it is near."""

_PACKED = re.compile(r"[-_.:]*(?:gguf|ud(?=-))|[-_.:]+i?q\d\w*")
_FLAG_LISTS = ("harmless_flags", "other_flags", "flag_versions")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCatalogue:
    """Every bundled checkpoint by lower-case name; ``longer``: more positions of others whose names tell one shape."""

    by_name: Mapping[str, ModelFacts]
    by_shape: Mapping[tuple[str, ...], ModelFacts]
    schemes: Mapping[str, QuantScheme]
    longer: Mapping[tuple[str, ...], tuple[int, ...]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Canonical names, sorted."""
        return tuple(sorted({facts.name for facts in self.by_name.values()}))

    @property
    def entries(self) -> tuple[ModelFacts, ...]:
        """Each checkpoint once, under its canonical name."""
        return tuple({facts.name: facts for facts in self.by_name.values()}.values())

    def find(self, name: str) -> ModelFacts:
        """Facts of one checkpoint.

        Args:
            name: A Hugging Face id, an alias, or a path whose last part is such a name. The id of a known size with a
                quantisation or a tuner's words in its name that is not listed is answered by a stated assumption.

        Raises:
            InputRejected: If the name belongs to no known model.
        """
        return self._sized(self._found(name))

    def lists(self, name: str) -> bool:
        """True when the name is an entry's own or an alias, not one that only resembles it."""
        wanted = name.strip().rstrip("/").lower()
        return wanted in self.by_name or ("/" not in wanted and wanted.rsplit("/", 1)[-1] in self.by_name)

    def _found(self, name: str) -> ModelFacts:
        wanted = name.strip().rstrip("/").lower()
        if found := self.by_name.get(wanted) or self.by_name.get(last := wanted.rsplit("/", 1)[-1]):
            return found
        if found := self.by_shape.get(shape_of(last)):
            bases = (self.by_name.get(wanted.rsplit("-", words)[0]) for words in (1, 2))
            found = next((base for base in bases if base is not None and base.name == found.name), found)
            return stored_as_named(found, name, self.schemes)
        announced, kept = (
            {scheme.facts.scheme for scheme in self.schemes.values() if scheme.words_in(words)}
            for words in (last, after_training(last))
        )
        if base := tuned_from(shape_of(last), self.by_shape, announced, kept):
            if "instruct" not in last:  # it may be tuned from a base that was published with more positions
                longer = self.longer.get(shape_of(base.name.rsplit("/", 1)[-1].lower()), ())
                base = replace(base, other_positions=(*base.other_positions, *longer))
            return stored_as_named(base, name, self.schemes)
        if "gguf" in last:
            base = self.by_shape.get(shape_of(_PACKED.sub("", last)))
            raise InputRejected(
                f"model {name!r} is not known",
                why="how a GGUF file lays its tensors out was not read",
                hint=f"ask about {base.name if base else 'the checkpoint that it was made from'}: "
                "its context costs the same.",
            )
        close = difflib.get_close_matches(last, sorted({n.rsplit("/", 1)[-1] for n in self.by_name}), n=3, cutoff=0.6)
        raise InputRejected(
            f"model {name!r} is not known",
            why=f"it is none of the {len(self.names)} bundled checkpoints nor their quantisations",
            hint=(f"did you mean {' or '.join(close)}? If not, " if close else "")
            + "add a checkpoint with: sre-agent models add PATH|gs://...|hf:REPO",
        )

    def _sized(self, facts: ModelFacts) -> ModelFacts:
        """Fill in the checkpoint's size where its layout is known: by arithmetic, hence late and only for one."""
        if facts.checkpoint_bytes is not None or facts.served_bytes is not None:
            return facts
        return replace(facts, checkpoint_bytes=stored_bytes(facts))

    def find_draft(self, name: str) -> ModelFacts | None:
        """Facts of a speculative draft model; None where no name is given or it is not known.

        Gemma 4's assistants are named after their target, and what they weigh stands in its entry.
        """
        if not name or name.strip().rstrip("/").lower().endswith("-assistant"):
            return None
        try:
            return self.find(name)
        except InputRejected:
            return None


@dataclass(frozen=True, kw_only=True, slots=True)
class FitCatalogue:
    """All data the prediction takes.

    Attributes:
        models: Checkpoints by name.
        accelerators: By contract name and alias; a name here has one size of memory.
        families: Names that cover several sizes, with the contract names of all of them.
        versions: vLLM's rules, oldest first.
        flag_names: Every flag that some read version takes.
    """

    models: ModelCatalogue
    accelerators: Mapping[str, AcceleratorFacts]
    versions: tuple[VersionRules, ...]
    families: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    flag_names: frozenset[str] = frozenset()

    def accelerator(self, name: str) -> AcceleratorFacts:
        """Facts of one accelerator by contract name or alias.

        Raises:
            InputRejected: If the name is not known, or covers several sizes of memory.
        """
        key = re.sub(r"[\s_]+", "-", name.strip().lower())
        if found := self.accelerators.get(key):
            return found
        if sizes := self.families.get(key):
            listed = ", ".join(f"{each} ({_memory(self.accelerators[each])})" for each in sizes)
            raise InputRejected(
                f"accelerator {name!r} covers several sizes of memory",
                why=f"it is sold as {listed}, and the answer depends on which",
                hint=f"name the one that is there: {' or '.join(sizes)}.",
            )
        names = [*self.accelerators, *self.families]
        close = difflib.get_close_matches(key, names, n=3, cutoff=0.6)
        nearest = ", ".join(difflib.get_close_matches(key, names, n=3, cutoff=0.0))
        raise InputRejected(
            f"accelerator {name!r} is not known",
            why=f"it is none of the {len({facts.name for facts in self.accelerators.values()})} that are",
            hint=f"did you mean {' or '.join(close)}?" if close else f"the nearest names are {nearest}",
        )

    def refuse_typing_errors(self, flags: Flags) -> None:
        """Refuse a flag that no version takes and that is nearly one that some version does.

        A flag that resembles none stays what it was: unknown, so nothing is told of the memory.

        Raises:
            InputRejected: With the nearest flag.
        """
        for other in flags.others:
            head = other.name.partition(".")[0].removeprefix("no-")
            if head in self.flag_names or other.name in self.flag_names:
                continue
            close = difflib.get_close_matches(head, self.flag_names, n=1, cutoff=0.82)
            if close:
                raise InputRejected(
                    f"flag '--{other.name}' is not known",
                    why="no vLLM version that was read takes it, so the server would not start",
                    hint=f"did you mean --{close[0]}?",
                )

    def rules(self, version: str | None) -> VersionRules:
        """The rules of one vLLM version: "0.21", "0.21.0", "v0.21.0"; None is the newest known.

        Between known versions the lower one's rules are returned with an assumption that says so; a rule that the
        neighbours do not share, and by which a server may be refused, is then not known.

        Raises:
            InputRejected: If the text is no version.
        """
        if version is None:
            return self.versions[-1]
        match = _VERSION.fullmatch(str(version).strip())
        if match is None:
            known = [rules.version for rules in self.versions]
            close = difflib.get_close_matches(str(version).strip().lower().removeprefix("v"), known, n=1, cutoff=0.6)
            raise InputRejected(
                f"vLLM version {version!r} was not read",
                why="it is no version",
                hint=f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}.",
            )
        wanted, early = (int(match[1]), int(match[2]), int(match[3] or 0)), _IS_EARLY.match(match[4]) is not None
        if early and wanted < _FIRST_RELEASE:
            note = f"{version} names no release: the newest known rules, and a build may lack or hold anything"
            commits = _COMMITS.match(match[4])
            late = commits is not None and int(commits[1]) >= _LATE_COMMITS
            newest = replace(self.versions[-1], assumptions=(note,), is_early=True, is_of_a_checkout=True)
            return replace(newest, is_late_checkout=late)
        lower = [rules for rules in self.versions if _numbers(rules.version) <= wanted]
        chosen = replace(lower[-1] if lower else self.versions[0], asked=".".join(map(str, wanted)))
        if _numbers(chosen.version)[:2] == wanted[:2] and not match[4]:
            return chosen
        beside = self.versions[len(lower) : len(lower) + 1]
        if early and _numbers(chosen.version) == wanted:
            beside = (*beside, *lower[-2:-1])
        if any(rules.needs_block_for_state != chosen.needs_block_for_state for rules in beside):
            chosen = replace(chosen, needs_block_for_state=None)
        named = f"{'.'.join(map(str, wanted))}{match[4]}"
        note = f"the memory rules of vLLM {chosen.version} hold for {named}, which has none of its own here"
        return replace(
            chosen,
            assumptions=(*chosen.assumptions, note),
            is_unread=not lower,
            is_early=early,
            is_of_a_checkout=_OF_A_CHECKOUT.search(match[4]) is not None,
        )


@cache
def load_fit_catalogue(folder: Any = None) -> FitCatalogue:
    """Read and validate the three data files, once per process.

    Args:
        folder: A path-like object with ``/`` and ``read_text`` that holds them; the bundled ones when None.

    Raises:
        SettingsRejected: Every mistake of the file at once, each with the entry's name.
    """
    root = folder if folder is not None else resources.files("agent.catalogue")
    models = _load_models(read_table(root / "models.json"))
    cards = read_table(root / "accelerators.json")
    accelerators = _load_accelerators(cards)
    rules = read_table(root / "vllm_versions.json")
    return FitCatalogue(
        models=models,
        accelerators=accelerators,
        versions=_load_versions(rules),
        families=_load_families(cards, accelerators),
        flag_names=typed_flag_names().union(*(rules.get(key, {}).get("names", ()) for key in _FLAG_LISTS)),
    )


def _load_models(document: dict[str, Any]) -> ModelCatalogue:
    mistakes = Mistakes("models.json")
    schemes: dict[str, QuantScheme] = {}
    for key, entry in document.get("schemes", {}).items():
        with mistakes.of(key):
            schemes[key] = scheme_from_entry(key, entry)
    by_name: dict[str, ModelFacts] = {}
    by_shape: dict[tuple[str, ...], ModelFacts] = {}
    longer: dict[tuple[str, ...], tuple[int, ...]] = {}
    for entry in document.get("models", []):
        with mistakes.of(str(entry.get("name"))):
            base = model_from_entry(entry, {key: scheme.facts for key, scheme in schemes.items()})
            for name in (entry["name"], *entry["aliases"]):
                _enter(by_name, name, base)
                by_name[name.lower()] = replace(base, other_positions=()) if "/" in name else base
                by_shape.setdefault(shape_of(name.rsplit("/", 1)[-1].lower()), base)
            for sibling in entry.get("siblings", ()):
                facts = sibling_of(base, sibling)
                _enter(by_name, sibling["id"], facts)
                shape = shape_of(sibling["id"].rsplit("/", 1)[-1].lower())
                if facts.max_position > by_shape.setdefault(shape, facts).max_position:
                    longer[shape] = (*longer.get(shape, ()), facts.max_position)
            for variant in entry["variants"]:
                facts = variant_of(base, variant, {key: scheme.facts for key, scheme in schemes.items()})
                if is_publishers_own(facts):  # its publisher's own: another's checkpoint of that name is a guess
                    if facts.served_bytes is not None:
                        _enter(by_name, variant["id"], replace(facts, quant=replace(facts.quant, narrows_cache="")))
                    by_name[variant["id"].lower()] = facts
                else:
                    _enter(by_name, variant["id"], facts)
    mistakes.refuse()
    return ModelCatalogue(by_name=by_name, by_shape=by_shape, schemes=schemes, longer=longer)


def _enter(by_name: dict[str, ModelFacts], name: str, facts: ModelFacts) -> None:
    by_name[name.lower()] = facts
    if by_name.setdefault(name.rsplit("/", 1)[-1].lower(), facts) is not facts:
        _widen(by_name, name, facts)


def _widen(by_name: dict[str, ModelFacts], name: str, facts: ModelFacts) -> None:
    """Two publishers printed different weights under one name: without the publisher it may be either."""
    short = name.rsplit("/", 1)[-1].lower()
    first, second = by_name[short].served_bytes if short in by_name else None, facts.served_bytes
    if first is None or second is None or first == second:
        return
    low, high = min(first.low, second.low), max(first.high, second.high)
    note = f"{name.rsplit('/', 1)[-1]} weighs differently by its publisher, who is not named"
    by_name[short] = replace(
        by_name[short],
        served_bytes=Bounds(low=low, best=(low + high) // 2, high=high),
        assumptions=tuple(dict.fromkeys((*by_name[short].assumptions, note))),
    )


def _load_accelerators(document: dict[str, Any]) -> dict[str, AcceleratorFacts]:
    mistakes = Mistakes("accelerators.json")
    found: dict[str, AcceleratorFacts] = {}
    for entry in document.get("accelerators", []):
        with mistakes.of(str(entry.get("name"))):
            facts = accelerator_from_entry(entry)
            for name in (facts.name, *entry["aliases"]):
                if name in found:
                    raise ValueError(f"the name {name!r} is taken twice")
                found[name] = facts
    mistakes.refuse()
    return found


def _load_families(
    document: dict[str, Any], accelerators: Mapping[str, AcceleratorFacts]
) -> dict[str, tuple[str, ...]]:
    """Names that cover several sizes; none of them may also stand for one."""
    mistakes = Mistakes("accelerators.json")
    found: dict[str, tuple[str, ...]] = {}
    for entry in document.get("families", []):
        with mistakes.of(str(entry.get("names"))):
            sizes = tuple(entry["sizes"])
            if len(sizes) < 2 or not entry["source"] or not entry["date"]:
                raise ValueError("it needs two sizes or more, a source and a date")
            if strangers := [name for name in sizes if name not in accelerators or accelerators[name].name != name]:
                raise ValueError(f"{strangers[0]!r} is no accelerator")
            for name in entry["names"]:
                if name in accelerators or name in found:
                    raise ValueError(f"the name {name!r} is taken twice")
                found[name] = sizes
    mistakes.refuse()
    return found


def _memory(facts: AcceleratorFacts) -> str:
    return "the host's memory" if facts.total_bytes is None else f"{facts.total_bytes.best / 2**30:.0f} GiB"


def _load_versions(document: dict[str, Any]) -> tuple[VersionRules, ...]:
    mistakes = Mistakes("vllm_versions.json")
    versions: list[VersionRules] = []
    harmless = frozenset(document.get("harmless_flags", {}).get("names", ()))
    spans: dict[str, FlagVersions] = {}
    with mistakes.of("flag_versions"):
        spans = flag_versions(document.get("flag_versions", {"read": [], "names": {}}))
    for entry in document.get("versions", []):
        with mistakes.of(str(entry.get("version"))):
            versions.append(version_from_entry(entry, harmless, spans))
    if not versions:
        mistakes.found.append("it names no version")
    mistakes.refuse()
    return tuple(sorted(versions, key=lambda rules: _numbers(rules.version)))


def _numbers(version: str) -> tuple[int, int, int]:
    major, minor, patch = version.split(".")
    return int(major), int(minor), int(patch)
