"""Headers of safetensors files, honest and hostile."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import InputRejected
from agent.fit.checkpoint.safetensors import BITS, MAX_HEADER_BYTES, header_length, parse_header


def header(**tensors):
    return json.dumps(tensors).encode()


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_a_header_gives_each_tensor_its_exact_size():
    raw = header(
        __metadata__={"format": "pt"},
        b=tensor("I32", [4, 2], 12, 44),
        a=tensor("BF16", [2, 3], 0, 12),
        scalar=tensor("F32", [], 44, 48),
        empty=tensor("F32", [0, 5], 48, 48),
        packed=tensor("F4", [6], 48, 51),
    )
    read = parse_header(raw, file="a.safetensors", file_bytes=8 + len(raw) + 51)
    assert {t.name: t.n_bytes for t in read.tensors} == {"a": 12, "b": 32, "scalar": 4, "empty": 0, "packed": 3}
    assert read.data_bytes == 51


def test_a_header_padded_with_spaces_is_read_as_writers_align_it():
    raw = header(a=tensor("U8", [3], 0, 3)) + b"      "
    assert parse_header(raw, file="a", file_bytes=8 + len(raw) + 3).data_bytes == 3


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        pytest.param(header(a=tensor("BF16", [2], -4, 0)), "offsets", id="negative offset"),
        pytest.param(header(a=tensor("BF16", [-2], 0, 4)), "shape", id="negative shape"),
        pytest.param(header(a=tensor("U8", [4], 0, 4), b=tensor("U8", [4], 2, 6)), "overlaps", id="overlap"),
        pytest.param(header(a=tensor("U8", [4], 0, 4), b=tensor("U8", [4], 0, 4)), "overlaps", id="same place twice"),
        pytest.param(header(a=tensor("U8", [4], 4, 8)), "hole", id="hole at the front"),
        pytest.param(header(a=tensor("U8", [4], 0, 4), b=tensor("U8", [1], 9, 10)), "hole", id="hole between"),
        pytest.param(header(a=tensor("BF16", [2], 0, 5)), "needs 4 bytes, has 5", id="size differs from shape"),
        pytest.param(header(a=tensor("BF16", [2], 4, 0)), "has -4", id="end before begin"),
        pytest.param(header(a=tensor("F4", [3], 0, 2)), "needs 1.5 bytes", id="half a byte left over"),
        pytest.param(header(a=tensor("U8", [2**40, 2**40], 0, 1)), "needs", id="product beyond 64 bits"),
        pytest.param(header(a=tensor("U8", [2**63], 0, 1)), "shape", id="dimension beyond 63 bits"),
        pytest.param(header(a=tensor("U8", [1.0], 0, 1)), "shape", id="fractional shape"),
        pytest.param(header(a=tensor("U8", [True], 0, 1)), "shape", id="a truth for a size"),
        pytest.param(header(a=tensor("U8", [1] * 17, 0, 1)), "shape", id="17 dimensions"),
        pytest.param(header(a=tensor("Q7", [1], 0, 1)), "unknown dtype", id="unknown dtype"),
        pytest.param(header(a=tensor(["U8"], [1], 0, 1)), "unknown dtype", id="dtype is a list"),
        pytest.param(header(a=[1, 2]), "not exactly", id="entry is a list"),
        pytest.param(header(a={"dtype": "U8"}), "not exactly", id="entry without shape"),
        pytest.param(header(a={**tensor("U8", [1], 0, 1), "url": "x"}), "not exactly", id="entry with more"),
        pytest.param(header(__metadata__={"a": 1}), "map of strings", id="metadata holds a number"),
        pytest.param(json.dumps({"a\u202e": tensor("U8", [1], 0, 1)}).encode(), "not printable", id="bidi in a name"),
        pytest.param(json.dumps({"a" * 600: tensor("U8", [1], 0, 1)}).encode(), "too long", id="name of 600"),
        pytest.param(b'  {"a": 1}', "does not begin", id="space before the brace"),
        pytest.param(b'{"a": ' + b"[" * 200_000, "nested deeper than 64", id="deep JSON"),
    ],
)
def test_a_hostile_header_is_refused_with_its_reason(raw, why):
    with pytest.raises(InputRejected) as caught:
        parse_header(raw, file="evil.safetensors")
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("prefix", "file_bytes"),
    [
        pytest.param(b"", None, id="empty file"),
        pytest.param(b"\x01\x02\x03", None, id="three bytes"),
        pytest.param(struct.pack("<Q", 0), None, id="no header"),
        pytest.param(struct.pack("<Q", MAX_HEADER_BYTES + 1), None, id="one over the cap"),
        pytest.param(b"\xff" * 8, None, id="16 exabytes"),
        pytest.param(struct.pack("<Q", 1000), 1007, id="longer than the file"),
    ],
)
def test_a_length_that_no_honest_file_has_is_refused(prefix, file_bytes):
    with pytest.raises(InputRejected):
        header_length(prefix, file="evil", file_bytes=file_bytes)


def test_a_file_that_goes_on_after_its_tensors_is_refused():
    raw = header(a=tensor("U8", [4], 0, 4))
    with pytest.raises(InputRejected, match=r"describes \d+ bytes, the file has \d+"):
        parse_header(raw, file="a", file_bytes=8 + len(raw) + 5)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([name for name, bits in BITS.items() if bits % 8 == 0]),
            st.lists(st.integers(0, 40), max_size=3),
        ),
        max_size=20,
    )
)
def test_whatever_a_writer_lays_out_end_to_end_is_read_back(layout):
    """Sizes are those of shape and dtype, in order, and add up."""
    tensors, end = {}, 0
    for number, (dtype, shape) in enumerate(layout):
        size = BITS[dtype] // 8
        for dimension in shape:
            size *= dimension
        tensors[f"t{number}"] = tensor(dtype, shape, end, end + size)
        end += size
    raw = header(**tensors)
    read = parse_header(raw, file="a", file_bytes=8 + len(raw) + end)
    assert {t.name for t in read.tensors} == set(tensors)
    assert sum(t.n_bytes for t in read.tensors) == read.data_bytes == end


@given(st.binary(max_size=200))
def test_noise_is_refused_and_never_crashes(noise):
    with pytest.raises(InputRejected):
        parse_header(b"{" + noise + b"\x00", file="noise")
