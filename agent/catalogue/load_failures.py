"""The failure catalogue, read from its TOML files and validated whole: every mistake is reported at once."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import re2

from agent.errors import SettingsRejected
from agent.failures.match.phrase import MIN_ANCHOR_BYTES, parse_phrase
from agent.failures.rules.rules import RULES
from agent.failures.signature import FailureClass, Phase, Proof, Role, Signature

FOLDER = Path(__file__).parent / "failures"
NOT_SIGNATURES = {"classes.toml", "fields.toml", "ranks.toml"}

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
_ID = re2.compile(r"[a-z][a-z0-9_]{2,60}")
_DATE = re2.compile(r"20\d\d-\d\d-\d\d")
_TEXTS = ("phrases", "context", "unless", "unless_text")
_KNOWN = {
    *_TEXTS, "id", "class", "class_by_phase", "role", "fields", "phase", "proof", "near", "passing", "platforms",
    "versions", "rank", "confidence", "certain", "needs_silence", "whole_line", "claims_line", "fixes",
    "fixes_by_phase", "decide", "becomes", "title", "what", "recognise", "hint", "source", "date",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ClassWords:
    """What a failure class is, for people, and its usual fixes."""

    what: str
    recognise: str
    hint: str
    fixes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Rank:
    """What an entry says of a trouble compared with others in the same text: a number with its reason.

    Attributes:
        precedence: 0..100; of several signatures of one role the higher explains the lower.
        roles: The roles whose entries may have it.
        default: Entries of these roles that name no rank have it.
        why: What must be true of an entry of this rank, for people.
    """

    precedence: int
    roles: frozenset[Role]
    default: bool
    why: str


@dataclass(frozen=True, kw_only=True)
class FailureCatalogue:
    """The whole catalogue.

    Attributes:
        signatures: In the order of file names, then of entries.
        classes: One entry for each failure class but ``unknown``.
        files: Signature id to the name of its file.
        ranks: By name.
        printed: Patterns of the figures that a start prints, by the name that they have beside a prediction.
    """

    signatures: tuple[Signature, ...]
    classes: Mapping[FailureClass, ClassWords]
    files: Mapping[str, str]
    ranks: Mapping[str, Rank]
    printed: Mapping[str, str]


def load_failures(folder: Path = FOLDER) -> FailureCatalogue:
    """Read and validate the catalogue.

    Args:
        folder: Holds classes.toml, fields.toml and any number of files with ``[[signature]]`` tables.

    Raises:
        SettingsRejected: Anything is wrong; the reason lists every mistake with file and entry.
    """
    mistakes: list[str] = []
    tables = {path.name: _read(path, mistakes) for path in sorted(folder.glob("*.toml"))}
    classes = _classes(tables.get("classes.toml", {}), mistakes)
    patterns = _patterns(tables.get("fields.toml", {}), mistakes)
    printed = _printed(tables.get("fields.toml", {}), patterns, mistakes)
    ranks = _ranks(tables.get("ranks.toml", {}), mistakes)
    signatures: list[Signature] = []
    files: dict[str, str] = {}
    for name, table in tables.items():
        if name in NOT_SIGNATURES:
            continue
        defaults = table.get("defaults", {})
        for raw in table.get("signature", []):
            entry = {**defaults, **raw}
            where = f"{name} {entry.get('id', '(no id)')}"
            rank = _rank_of(entry, ranks)
            found = _mistakes_of(entry, patterns)
            if rank is None:
                found.append(f"{entry.get('rank', '(no rank)')!r} is no rank of its role")
            if entry.get("id") in files:
                found.append("id stands twice")
            mistakes.extend(f"{where}: {mistake}" for mistake in found)
            if not found and rank is not None:
                signature = _signature(entry, patterns, classes, rank)
                signatures.append(signature)
                files[signature.id] = name
    if mistakes:
        raise SettingsRejected(
            f"the failure catalogue in {str(folder)!r} was not loaded",
            why=f"{len(mistakes)} mistakes: " + "; ".join(mistakes),
            hint="correct the entries named",
        )
    return FailureCatalogue(signatures=tuple(signatures), classes=classes, files=files, ranks=ranks, printed=printed)


def is_fix_action(text: str) -> bool:
    """Whether a text is in the closed vocabulary of fix actions."""
    return text in FIXES or bool(_FLAG.fullmatch(text)) or bool(_ENV.fullmatch(text))


def _read(path: Path, mistakes: list[str]) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        mistakes.append(f"{path.name}: {error}")
        return {}


def _classes(table: Mapping[str, Any], mistakes: list[str]) -> dict[FailureClass, ClassWords]:
    classes: dict[FailureClass, ClassWords] = {}
    wanted = {str(class_) for class_ in FailureClass if class_ is not FailureClass.UNKNOWN}
    mistakes.extend(f"classes.toml: {name} is missing" for name in sorted(wanted - set(table)))
    for name, words in table.items():
        if name not in wanted:
            mistakes.append(f"classes.toml: {name} is no class")
            continue
        lacking = [key for key in ("what", "recognise", "hint", "fixes") if not words.get(key)]
        wrong = [fix for fix in words.get("fixes", []) if not is_fix_action(fix)]
        mistakes.extend(f"classes.toml {name}: lacks {key}" for key in lacking)
        mistakes.extend(f"classes.toml {name}: {fix!r} is no fix action" for fix in wrong)
        if not lacking and not wrong:
            classes[FailureClass(name)] = ClassWords(
                what=words["what"], recognise=words["recognise"], hint=words["hint"], fixes=tuple(words["fixes"])
            )
    return classes


def _patterns(table: Mapping[str, Any], mistakes: list[str]) -> dict[str, str]:
    patterns: dict[str, str] = {}
    for name, pattern in table.get("fields", {}).items():
        try:
            groups = re2.compile(pattern).groups
        except re2.error as error:
            mistakes.append(f"fields.toml {name}: {error}")
            continue
        if groups != 1:
            mistakes.append(f"fields.toml {name}: has {groups} groups, wants 1")
        patterns[name] = pattern
    return patterns


def _printed(table: Mapping[str, Any], patterns: Mapping[str, str], mistakes: list[str]) -> dict[str, str]:
    named = table.get("printed", {})
    mistakes.extend(
        f"fields.toml printed {name}: no field {field!r}" for name, field in named.items() if field not in patterns
    )
    return {name: patterns[field] for name, field in named.items() if field in patterns}


def _ranks(table: Mapping[str, Any], mistakes: list[str]) -> dict[str, Rank]:
    ranks: dict[str, Rank] = {}
    for name, raw in table.items():
        number, roles = raw.get("precedence", -1), raw.get("roles", [])
        if not 0 <= number <= 100:
            mistakes.append(f"ranks.toml {name}: precedence is {number!r}, want 0..100")
        if not raw.get("why"):
            mistakes.append(f"ranks.toml {name}: lacks why")
        unknown = [role for role in roles if role not in set(Role)]
        mistakes.extend(f"ranks.toml {name}: {role!r} is no role" for role in unknown)
        ranks[name] = Rank(
            precedence=number,
            roles=frozenset(Role(role) for role in roles if role not in unknown),
            default=bool(raw.get("default", False)),
            why=raw.get("why", ""),
        )
    return ranks


def _rank_of(entry: Mapping[str, Any], ranks: Mapping[str, Rank]) -> Rank | None:
    role = entry.get("role", "cause")
    if "rank" in entry:
        named = ranks.get(entry["rank"])
        return named if named is not None and role in named.roles else None
    return next((rank for rank in ranks.values() if rank.default and role in rank.roles), None)


def _mistakes_of(entry: Mapping[str, Any], patterns: Mapping[str, str]) -> list[str]:
    found = [f"unknown key {key!r}" for key in entry if key not in _KNOWN]
    found += [
        f"{key} is missing" for key in ("id", "class", "phrases", "title", "source", "date") if not entry.get(key)
    ]
    found += _closed(entry)
    found += _texts(entry)
    found += [f"no field {name!r} in fields.toml" for name in entry.get("fields", []) if name not in patterns]
    fixes = [*entry.get("fixes", []), *(fix for row in entry.get("fixes_by_phase", {}).values() for fix in row)]
    found += [f"{fix!r} is no fix action" for fix in fixes if not is_fix_action(fix)]
    if not 0 < entry.get("confidence", 0.9) <= 1:
        found.append(f"confidence is {entry['confidence']!r}, want 0..1")
    if entry.get("id") and not _ID.fullmatch(entry["id"]):
        found.append("id wants small letters, digits and underscores")
    if entry.get("date") and not _DATE.fullmatch(str(entry["date"])):
        found.append(f"date is {entry['date']!r}, want YYYY-MM-DD")
    return found


def _closed(entry: Mapping[str, Any]) -> list[str]:
    classes = set(FailureClass) - {FailureClass.UNKNOWN}
    named = (entry.get("class"), *entry.get("class_by_phase", {}).values(), *entry.get("becomes", ()))
    found = [f"{value!r} is no class" for value in named if value is not None and value not in classes]
    phases = (entry.get("phase", "unknown"), *entry.get("class_by_phase", {}), *entry.get("fixes_by_phase", {}))
    found += [f"{phase!r} is no phase" for phase in phases if phase not in set(Phase)]
    if entry.get("proof", "") not in set(Proof):
        found.append(f"{entry['proof']!r} is no proof")
    if entry.get("role", "cause") not in set(Role):
        found.append(f"{entry['role']!r} is no role")
    found += [f"{name!r} is no platform" for name in entry.get("platforms", []) if name not in PLATFORMS]
    if entry.get("decide") and entry["decide"] not in RULES:
        found.append(f"{entry['decide']!r} is no rule of directions")
    if (entry.get("class") == "benign") != (entry.get("role", "cause") in {"benign", "phase"}):
        found.append("class benign and role benign or phase go together")
    if entry.get("claims_line") and (
        entry.get("role") != "benign" or any("<*>" in t for t in entry.get("phrases", ()))
    ):
        found.append("claims_line wants role benign and phrases without gaps")
    return found


def _texts(entry: Mapping[str, Any]) -> list[str]:
    found = []
    for key in _TEXTS:
        seen: set[str] = set()
        for text in entry.get(key, []):
            try:
                parse_phrase(text, at_least=MIN_ANCHOR_BYTES if key == "phrases" else 2)
            except ValueError as error:
                found.append(f"{key} {text!r} {error}")
            if text in seen:
                found.append(f"{key} {text!r} stands twice")
            seen.add(text)
    return found


def _signature(
    entry: Mapping[str, Any], patterns: Mapping[str, str], classes: Mapping[FailureClass, ClassWords], rank: Rank
) -> Signature:
    class_ = FailureClass(entry["class"])
    words = classes.get(class_)
    fixes: Sequence[str] = entry.get("fixes") or (words.fixes if words else ())
    return Signature(
        id=entry["id"],
        failure_class=class_,
        class_by_phase={Phase(key): FailureClass(value) for key, value in entry.get("class_by_phase", {}).items()},
        role=Role(entry.get("role", "cause")),
        phrases=tuple(entry["phrases"]),
        context=tuple(entry.get("context", ())),
        unless=tuple(entry.get("unless", ())),
        unless_text=tuple(entry.get("unless_text", ())),
        claims_line=bool(entry.get("claims_line", False)),
        whole_line=bool(entry.get("whole_line", False)),
        passing=bool(entry.get("passing", False)),
        needs_silence=bool(entry.get("needs_silence", False)),
        fields={name: patterns[name] for name in entry.get("fields", ())},
        phase=Phase(entry.get("phase", "unknown")),
        proof=Proof(entry.get("proof", "")),
        near=bool(entry.get("near", False)),
        platforms=tuple(entry.get("platforms", ())),
        versions=entry.get("versions", ""),
        precedence=rank.precedence,
        confidence=float(entry.get("confidence", 0.9)),
        certain=bool(entry.get("certain", True)),
        fixes=tuple(fixes),
        fixes_by_phase={Phase(key): tuple(value) for key, value in entry.get("fixes_by_phase", {}).items()},
        decide=entry.get("decide", ""),
        becomes=tuple(FailureClass(name) for name in entry.get("becomes", ())),
        title=entry["title"],
        what=entry.get("what", ""),
        recognise=entry.get("recognise", ""),
        hint=entry.get("hint", ""),
        source=entry["source"],
        date=str(entry["date"]),
    )
