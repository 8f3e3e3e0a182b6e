"""The header of a safetensors file: which tensors it holds and where, read without touching one of them."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any, Final

from agent.errors import InputRejected
from agent.strict_json import read_object

PREFIX_BYTES: Final = 8
MAX_HEADER_BYTES: Final = 32 * 2**20
MAX_TENSORS: Final = 200_000
MAX_NAME_CHARS: Final = 512
MAX_DIMENSIONS: Final = 16
_HINT: Final = "download it again or ask its publisher"

BITS: Final[dict[str, int]] = {
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "F4": 4,
    "U16": 16,
    "I16": 16,
    "F16": 16,
    "BF16": 16,
    "U32": 32,
    "I32": 32,
    "F32": 32,
    "C64": 64,
    "U64": 64,
    "I64": 64,
    "F64": 64,
}
"""Bits of one element by dtype name; the list of the format's reference implementation (safetensors 0.6, 2026)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredTensor:
    """One tensor of a file.

    Attributes:
        name: As stored, at most 512 characters.
        dtype: One of ``BITS``.
        shape: Elements per dimension; () for a scalar.
        n_bytes: Size in the file.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    n_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SafetensorsHeader:
    """What one file holds.

    Attributes:
        tensors: In the order of their data.
        data_bytes: Size of all tensors; the file is 8 + header + data.
    """

    tensors: tuple[StoredTensor, ...]
    data_bytes: int


def header_length(prefix: bytes, *, file: str, file_bytes: int | None = None) -> int:
    """Length of the JSON header that follows the first eight bytes.

    Args:
        prefix: The file's first 8 bytes, an unsigned little-endian integer.
        file: Name for the error.
        file_bytes: Size of the whole file, if known.

    Returns:
        Bytes to read after the prefix, 2 .. ``MAX_HEADER_BYTES``.

    Raises:
        InputRejected: Too short a file, or a length that no honest file has.
    """
    if len(prefix) != PREFIX_BYTES:
        raise _refused(file, f"it ends after {len(prefix)} bytes, a header needs {PREFIX_BYTES}")
    (length,) = struct.unpack("<Q", prefix)
    if not 2 <= length <= MAX_HEADER_BYTES:
        raise _refused(file, f"its header claims {length} bytes, want 2..{MAX_HEADER_BYTES}")
    if file_bytes is not None and PREFIX_BYTES + length > file_bytes:
        raise _refused(file, f"its header claims {length} bytes, the whole file has {file_bytes}")
    return int(length)


def parse_header(raw: bytes, *, file: str, file_bytes: int | None = None) -> SafetensorsHeader:
    """Read the JSON header and check that its tensors tile the data exactly.

    Args:
        raw: The header's bytes, without the 8-byte prefix.
        file: Name for the errors.
        file_bytes: Size of the whole file, if known; the tensors must end where it does.

    Returns:
        Every tensor with its size.

    Raises:
        InputRejected: Anything the format forbids: what :func:`agent.strict_json.read_object` refuses; an unknown
            dtype; a shape, offset or name that is negative, fractional, huge or of another type; overlaps, holes,
            a size that does not match shape and dtype, or an end that is not the file's.
    """
    if not raw.startswith(b"{"):
        raise _refused(file, "its header does not begin with '{'")
    entries = read_object(raw, what=f"header of {file[:200]!r}", limit=MAX_HEADER_BYTES, hint=_HINT)
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise _refused(file, "its __metadata__ is not a map of strings")
    if len(entries) > MAX_TENSORS:
        raise _refused(file, f"it lists {len(entries)} tensors, want at most {MAX_TENSORS}")
    placed = sorted((_placed(name, entry, file=file) for name, entry in entries.items()), key=lambda item: item[:2])
    end = 0
    for begin, stop, tensor in placed:
        if begin != end:
            how = "overlaps the tensor before it" if begin < end else "leaves a hole before it"
            raise _refused(file, f"tensor {tensor.name!r} at {begin} {how}, which ends at {end}")
        end = stop
    if file_bytes is not None and PREFIX_BYTES + len(raw) + end != file_bytes:
        want = PREFIX_BYTES + len(raw) + end
        raise _refused(file, f"its header describes {want} bytes, the file has {file_bytes}")
    return SafetensorsHeader(tensors=tuple(tensor for _, _, tensor in placed), data_bytes=end)


def _placed(name: str, entry: Any, *, file: str) -> tuple[int, int, StoredTensor]:
    if not name or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise _refused(file, f"the tensor name {name[:80]!r} is empty, too long or not printable")
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise _refused(file, f"tensor {name!r} has not exactly dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BITS:
        raise _refused(file, f"tensor {name!r} has the unknown dtype {str(dtype)[:40]!r}")
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or not all(map(_is_size, shape)):
        raise _refused(file, f"tensor {name!r} has the shape {str(shape)[:80]}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_size, offsets)):
        raise _refused(file, f"tensor {name!r} has the offsets {str(offsets)[:80]}")
    begin, stop = offsets
    bits = math.prod(shape) * BITS[dtype]
    if bits % 8 or stop - begin != bits // 8:
        raise _refused(file, f"tensor {name!r} of {dtype} {shape} needs {bits / 8:g} bytes, has {stop - begin}")
    return begin, stop, StoredTensor(name=name, dtype=dtype, shape=tuple(shape), n_bytes=stop - begin)


def _is_size(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63  # a bool is an int, and is none of ours


def _refused(file: str, why: str) -> InputRejected:
    return InputRejected(f"the safetensors file {file[:200]!r} was refused", why=why, hint=_HINT)
