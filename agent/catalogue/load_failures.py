"""The failure catalogue, read from its TOML files and validated whole: every mistake is reported at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import re2
from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from agent.catalogue.catalogue_file import Mistakes, read_table
from agent.core.value import Value
from agent.errors import SettingsRejected
from agent.failures.match.phrase import MIN_ANCHOR_BYTES, parse_phrase
from agent.failures.rules.rules import RULES
from agent.failures.signature import FailureClass, Phase, Proof, Role, Signature
from agent.failures.text.words import Says, Words, pattern_of

FOLDER = Path(__file__).parent / "failures"
NOT_SIGNATURES = {"classes.toml", "fields.toml", "ranks.toml", "words.toml"}

PLATFORMS = frozenset({"cloud_run", "kubernetes", "tpu_vm", "container_apps", "ec2", "host"})
FIXES = frozenset(
    {
        "increase_startup_probe", "fix_probe_path", "relax_liveness_probe", "increase_memory_limit", "set_shm_size",
        "increase_disk", "scale_out", "change_accelerator", "change_zone", "change_model_or_quantization",
        "fix_mount_permissions", "fix_cache_path", "fix_auth_token", "fix_quota", "fix_network", "fix_network_nccl",
        "fix_image_or_driver", "fix_command_line", "upgrade_version", "redownload_weights", "restart",
        "set_strategy", "collect_container_logs", "none_benign", "none_client_side", "none_code_bug",
    }
)  # fmt: skip
"""Fix actions of one word; besides them ``set_flag NAME [lower|up|VALUE]`` and ``set_env NAME``."""

_FLAG = re2.compile(r"set_flag [a-z][a-z0-9_]{1,40}( [A-Za-z0-9_.:/-]{1,40})?")
_ENV = re2.compile(r"set_env [A-Z][A-Z0-9_]{1,60}")


def is_fix_action(text: str) -> bool:
    """Whether a text is in the closed vocabulary of fix actions."""
    return text in FIXES or bool(_FLAG.fullmatch(text)) or bool(_ENV.fullmatch(text))


def _fix(text: str) -> str:
    if not is_fix_action(text):
        raise ValueError(f"{text!r} is no fix action")
    return text


def _platform(text: str) -> str:
    if text not in PLATFORMS:
        raise ValueError(f"{text!r} is no platform")
    return text


def _known_class(class_: FailureClass) -> FailureClass:
    if class_ is FailureClass.UNKNOWN:
        raise ValueError(f"{class_.value!r} is no class of an entry")
    return class_


def _rule(name: str) -> str:
    if name and name not in RULES:
        raise ValueError(f"{name!r} is no rule of directions")
    return name


def _texts(texts: tuple[str, ...], *, at_least: int = 2) -> tuple[str, ...]:
    wrong = [f"{text!r} stands twice" for text in {*texts} if texts.count(text) > 1]
    for text in texts:
        try:
            parse_phrase(text, at_least=at_least)
        except ValueError as error:
            wrong.append(f"{text!r} {error}")
    if wrong:
        raise ValueError("; ".join(wrong))
    return texts


_Fixes = tuple[Annotated[str, AfterValidator(_fix)], ...]
_Class = Annotated[FailureClass, AfterValidator(_known_class)]
_Texts = Annotated[tuple[str, ...], AfterValidator(_texts)]
_Phrases = Annotated[tuple[str, ...], AfterValidator(lambda texts: _texts(texts, at_least=MIN_ANCHOR_BYTES))]
_Sentence = Annotated[str, Field(min_length=1)]


class ClassWords(Value):
    """What a failure class is, for people, and its usual fixes."""

    what: _Sentence
    recognise: _Sentence
    hint: _Sentence
    fixes: _Fixes = Field(min_length=1)


def _phrased(texts: tuple[str, ...]) -> tuple[str, ...]:
    wrong = [f"{text!r} stands twice" for text in {*texts} if texts.count(text) > 1]
    for text in texts:
        try:
            pattern_of(text)
        except ValueError as error:
            wrong.append(str(error))
    if wrong:
        raise ValueError("; ".join(wrong))
    return texts


class _Group(Value):
    """A ``[[words]]`` as it stands in words.toml."""

    says: Says
    proves: _Sentence
    phrases: Annotated[tuple[str, ...], AfterValidator(_phrased)] = Field(min_length=1)


class Rank(Value):
    """What an entry says of a trouble compared with others in the same text: a number with its reason.

    Attributes:
        precedence: 0..100; of several signatures of one role the higher explains the lower.
        roles: The roles whose entries may have it.
        default: Entries of these roles that name no rank have it.
        why: What must be true of an entry of this rank, for people.
    """

    precedence: int = Field(ge=0, le=100)
    roles: frozenset[Role] = frozenset()
    default: bool = False
    why: _Sentence


class _Entry(Value):
    """A ``[[signature]]`` as it stands in its file; :class:`Signature` says what each key means."""

    id: str = Field(pattern="^[a-z][a-z0-9_]{2,60}$")
    failure_class: _Class = Field(alias="class")
    class_by_phase: Mapping[Phase, _Class] = Field(default_factory=dict)
    role: Role = Role.CAUSE
    phrases: _Phrases = Field(min_length=1)
    context: _Texts = ()
    below: bool = False
    once: bool = False
    unless: _Texts = ()
    unless_text: _Texts = ()
    claims_line: bool = False
    whole_line: bool = False
    names_subject: bool = False
    passing: bool = False
    says_error: bool = False
    needs_silence: bool = False
    fields: tuple[str, ...] = ()
    phase: Phase = Phase.UNKNOWN
    proof: Proof = Proof.NONE
    near: bool = False
    platforms: tuple[Annotated[str, AfterValidator(_platform)], ...] = ()
    versions: str = ""
    rank: str | None = Field(default=None, validate_default=True)
    confidence: float = Field(default=0.9, gt=0, le=1)
    certain: bool = True
    fixes: _Fixes = ()
    fixes_by_phase: Mapping[Phase, _Fixes] = Field(default_factory=dict)
    decide: Annotated[str, AfterValidator(_rule)] = ""
    becomes: tuple[_Class, ...] = ()
    title: _Sentence
    what: str = ""
    recognise: str = ""
    hint: str = ""
    source: _Sentence
    date: str = Field(pattern=r"^20\d\d-\d\d-\d\d$")

    @field_validator("fields")
    @classmethod
    def _is_read(cls, names: tuple[str, ...], known: ValidationInfo[Mapping[str, Any]]) -> tuple[str, ...]:
        for name in names:
            if name not in known.context["patterns"]:
                raise ValueError(f"no field {name!r} in fields.toml")
        return names

    @field_validator("rank")
    @classmethod
    def _is_of_its_role(cls, name: str | None, known: ValidationInfo[Mapping[str, Any]]) -> str:
        ranks, role = known.context["ranks"], known.data.get("role")
        usual = (rank for rank, said in ranks.items() if said.default and role in said.roles)
        found = name if name is not None else next(usual, "(no rank)")
        if found not in ranks or role not in ranks[found].roles:
            raise ValueError(f"{found!r} is no rank of its role")
        return found

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if (self.failure_class is FailureClass.BENIGN) != (self.role in {Role.BENIGN, Role.PHASE}):
            raise ValueError("class benign and role benign or phase go together")
        if self.claims_line and (self.role is not Role.BENIGN or any("<*>" in text for text in self.phrases)):
            raise ValueError("claims_line wants role benign and phrases without gaps")
        return self


@dataclass(frozen=True, kw_only=True)
class FailureCatalogue:
    """The whole catalogue.

    Attributes:
        signatures: In the order of file names, then of entries.
        classes: One entry for each failure class but ``unknown``.
        files: Signature id to the name of its file.
        ranks: By name.
        words: By which any program tells how it is.
        printed: Patterns of the figures that a start prints, by the name that they have beside a prediction.
    """

    signatures: tuple[Signature, ...]
    classes: Mapping[FailureClass, ClassWords]
    files: Mapping[str, str]
    ranks: Mapping[str, Rank]
    words: tuple[Words, ...]
    printed: Mapping[str, str]


def load_failures(folder: Path = FOLDER) -> FailureCatalogue:
    """Read and validate the catalogue.

    Args:
        folder: Holds classes.toml, fields.toml and any number of files with ``[[signature]]`` tables.

    Raises:
        SettingsRejected: Anything is wrong; the reason lists every mistake with file and entry.
    """
    mistakes = Mistakes(str(folder))
    tables = {path.name: _table(path, mistakes) for path in sorted(folder.glob("*.toml"))}
    classes = _classes(tables.get("classes.toml", {}), mistakes)
    patterns = _patterns(tables.get("fields.toml", {}), mistakes)
    printed = _printed(tables.get("fields.toml", {}), patterns, mistakes)
    ranks: dict[str, Rank] = {}
    for name, raw in tables.get("ranks.toml", {}).items():
        with mistakes.of(f"ranks.toml {name}"):
            ranks[name] = Rank.model_validate(raw)
    status_words = _words(tables.get("words.toml", {}), mistakes)
    signatures: dict[str, Signature] = {}
    files: dict[str, str] = {}
    for name, table in tables.items():
        if name in NOT_SIGNATURES:
            continue
        for raw in table.get("signature", []):
            given = {**table.get("defaults", {}), **raw}
            id_, where = str(given.get("id")), f"{name} {given.get('id', '(no id)')}"
            mistakes.found += [f"{where}: id stands twice"] if id_ in files else []
            files[id_] = name
            with mistakes.of(where):
                entry = _Entry.model_validate(given, context={"patterns": patterns, "ranks": ranks})
                words = classes.get(entry.failure_class)
                signatures[entry.id] = Signature(
                    **{name: value for name, value in entry if name not in {"rank", "fields", "fixes"}},
                    precedence=ranks[str(entry.rank)].precedence,
                    fields={name: patterns[name] for name in entry.fields},
                    fixes=entry.fixes or (words.fixes if words else ()),
                )
    mistakes.refuse()
    return FailureCatalogue(
        signatures=tuple(signatures.values()),
        classes=classes,
        files=files,
        ranks=ranks,
        words=status_words,
        printed=printed,
    )


def _table(path: Path, mistakes: Mistakes) -> dict[str, Any]:
    try:
        return read_table(path)
    except SettingsRejected as error:
        mistakes.found.append(f"{path.name}: {error.why}")
        return {}


def _classes(table: Mapping[str, Any], mistakes: Mistakes) -> dict[FailureClass, ClassWords]:
    classes: dict[FailureClass, ClassWords] = {}
    wanted = {str(class_) for class_ in FailureClass if class_ is not FailureClass.UNKNOWN}
    mistakes.found += [f"classes.toml: {name} is missing" for name in sorted(wanted - set(table))]
    mistakes.found += [f"classes.toml: {name} is no class" for name in table if name not in wanted]
    for name in (name for name in table if name in wanted):
        with mistakes.of(f"classes.toml {name}"):
            classes[FailureClass(name)] = ClassWords.model_validate(table[name])
    return classes


def _words(table: Mapping[str, Any], mistakes: Mistakes) -> tuple[Words, ...]:
    groups: list[Words] = []
    for number, raw in enumerate(table.get("words", ()), 1):
        with mistakes.of(f"words.toml group {number}"):
            group = _Group.model_validate(raw)
            groups.append(Words(says=group.says, proves=group.proves, phrases=group.phrases))
    return tuple(groups)


def _patterns(table: Mapping[str, Any], mistakes: Mistakes) -> dict[str, str]:
    patterns: dict[str, str] = {}
    for name, pattern in table.get("fields", {}).items():
        try:
            groups = re2.compile(pattern).groups
        except re2.error as error:
            mistakes.found.append(f"fields.toml {name}: {error}")
            continue
        if groups != 1:
            mistakes.found.append(f"fields.toml {name}: has {groups} groups, wants 1")
        patterns[name] = pattern
    return patterns


def _printed(table: Mapping[str, Any], patterns: Mapping[str, str], mistakes: Mistakes) -> dict[str, str]:
    named = table.get("printed", {})
    mistakes.found += [
        f"fields.toml printed {name}: no field {field!r}" for name, field in named.items() if field not in patterns
    ]
    return {name: patterns[field] for name, field in named.items() if field in patterns}
