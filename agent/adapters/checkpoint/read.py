"""Read a checkpoint's profile: config.json, the index, and the header of every shard; nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from agent.errors import InputRejected
from agent.fit.checkpoint.checkpoint import ModelProfile, profile_of
from agent.fit.checkpoint.config_reader import MAX_CONFIG_BYTES
from agent.fit.checkpoint.safetensors import PREFIX_BYTES, SafetensorsHeader, header_length, parse_header
from agent.fit.model_and_hardware import ModelFacts
from agent.ports.checkpoint import CheckpointFileMissing, CheckpointFiles
from agent.strict_json import read_object

MAX_INDEX_BYTES: Final = 32 * 2**20
MAX_SHARDS: Final = 1024
MAX_ALL_HEADERS_BYTES: Final = 256 * 2**20
_SINGLE: Final = "model.safetensors"
_NUMBERED: Final = re.compile(r"-(\d{1,6})-of-(\d{1,6})\.safetensors$")
_INDEX: Final = "model.safetensors.index.json"


def read_profile(
    files: CheckpointFiles, *, name: str, read_at: str, bundled: Iterable[ModelFacts] = ()
) -> ModelProfile:
    """Read one checkpoint.

    Args:
        files: Its files.
        name: Name for the profile.
        read_at: ISO 8601, UTC.
        bundled: The catalogue's models, to borrow from and to contradict.

    Returns:
        The profile. For n shards 2 n + 2 ranges were read.

    Raises:
        InputRejected: A file is hostile, damaged or missing, the index names tensors that no shard holds or leaves
            numbered shards out, or layers are missing.
        DependencyFailed: The source does not answer.
    """
    config = _whole(files, "config.json", MAX_CONFIG_BYTES)
    shards, promised = _shards(files)
    headers = list(_headers(files, shards))
    held = {tensor.name for header in headers for tensor in header.tensors}
    missing = promised - held
    if missing:
        raise InputRejected(
            f"the checkpoint at {files.source!r} was refused",
            why=f"its index names {len(missing)} tensors that no file holds, {min(missing)[:120]!r} among them",
            hint="download it again: a shard is from another version",
        )
    return profile_of(name=name, source=files.source, read_at=read_at, config=config, headers=headers, bundled=bundled)


def _whole(files: CheckpointFiles, name: str, most: int) -> bytes:
    piece = files.read(name, start=0, length=most + 1)
    if len(piece.data) > most:
        raise InputRejected(
            f"{name!r} of {files.source!r} was refused", why=f"it has more than {most} bytes", hint="name the folder"
        )
    return piece.data


def _shards(files: CheckpointFiles) -> tuple[list[str], frozenset[str]]:
    """Shard names, and the tensors that the index promises."""
    try:
        raw = _whole(files, _INDEX, MAX_INDEX_BYTES)
    except CheckpointFileMissing:
        return [_SINGLE], frozenset()
    index = read_object(raw, what=f"{_INDEX} of {files.source!r}", limit=MAX_INDEX_BYTES, hint="download it again")
    weights = index.get("weight_map")
    if not isinstance(weights, dict) or not all(isinstance(shard, str) for shard in weights.values()):
        raise InputRejected(
            f"the {_INDEX} was refused", why="its weight_map is not a map of names", hint="download it again"
        )
    shards = sorted({plain(shard) for shard in weights.values()})
    if not 1 <= len(shards) <= MAX_SHARDS or not all(shard.endswith(".safetensors") for shard in shards):
        why = f"it names {len(shards)} files, want 1..{MAX_SHARDS} that end in .safetensors"
        raise InputRejected(f"the {_INDEX} was refused", why=why, hint="use a safetensors checkpoint")
    _refuse_gaps(shards)
    return shards, frozenset(weights)


def _refuse_gaps(shards: Iterable[str]) -> None:
    """Files that say "3 of 4" are 4; an index that names fewer was cut or belongs to another version."""
    counted: dict[str, set[int]] = {}
    for shard in shards:
        if numbered := _NUMBERED.search(shard):
            counted.setdefault(numbered.group(2), set()).add(int(numbered.group(1)))
    for total, seen in counted.items():
        if missing := sorted(set(range(1, min(int(total), MAX_SHARDS) + 1)) - seen):
            lacks = f"{', '.join(map(str, missing[:8]))} {'is' if len(missing) == 1 else 'are'} missing"
            why = f"it names {len(seen)} of {int(total)} numbered files, {lacks}"
            raise InputRejected(f"the {_INDEX} was refused", why=why, hint="download the index and the files again")


def _headers(files: CheckpointFiles, shards: Iterable[str]) -> Iterator[SafetensorsHeader]:
    read = 0
    for shard in shards:
        first = files.read(shard, start=0, length=PREFIX_BYTES)
        length = header_length(first.data, file=shard, file_bytes=first.file_bytes)
        read += length
        if read > MAX_ALL_HEADERS_BYTES:
            why = f"its headers are larger than {MAX_ALL_HEADERS_BYTES} bytes together"
            raise InputRejected(
                f"the checkpoint at {files.source!r} was refused", why=why, hint="check where it was published"
            )
        piece = files.read(shard, start=PREFIX_BYTES, length=length)
        if len(piece.data) != length:
            why = f"its header ends after {len(piece.data)} of {length} bytes"
            raise InputRejected(f"{shard!r} of {files.source!r} was refused", why=why, hint="download it again")
        yield parse_header(piece.data, file=shard, file_bytes=first.file_bytes)


_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")


def plain(name: str) -> str:
    """Return a file name that stays in its folder.

    Args:
        name: From an index or from us.

    Raises:
        InputRejected: It has a folder, a control character, a leading dot, or more than 255 characters.
    """
    if _PLAIN.fullmatch(name) and ".." not in name:
        return name
    raise InputRejected(
        f"the checkpoint file {name[:80]!r} was not read",
        why="it is not a plain file name",
        hint="check model.safetensors.index.json: it must name files beside it",
    )
