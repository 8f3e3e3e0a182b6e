"""A text in chunks is redacted as if it had come whole."""

import random

import pytest

from agent.catalogue.load_secrets import load_secrets
from agent.core.redaction import Redactor
from agent.core.redaction.stream import HELD, LONGEST, RedactionStream

REDACTOR = Redactor(load_secrets())


def streamed(text: str, sizes) -> str:
    stream = RedactionStream(REDACTOR)
    out, position = [], 0
    while position < len(text):
        size = next(sizes)
        out.append(stream.feed(text[position : position + size]).text)
        position += size
    return "".join([*out, stream.finish().text])


@pytest.mark.parametrize("seed", range(6))
def test_chunks_of_any_size_give_what_the_whole_gives(met, seed):
    chance = random.Random(seed)
    lines = []
    for text, _ in sorted(met.values(), key=lambda _: chance.random()):
        lines += [
            f"INFO line {chance.randint(0, 99)} of the log, nothing to see" for _ in range(chance.randint(1, 120))
        ] + [text, "-- end --"]
    text = "\n".join(lines)
    sizes = iter(lambda: chance.choice([1, 7, 80, 4096, 30_000]), None)
    assert len(text) > 2 * HELD
    assert streamed(text, sizes) == REDACTOR.redact(text).text


def test_letter_by_letter_no_kind_met_here_slips_through(met):
    for text, secret in met.values():
        assert secret not in streamed(f"{text}\n", iter(lambda: 1, None))


def test_flush_gives_out_whole_lines_only(met):
    stream = RedactionStream(REDACTOR)
    token = met["huggingface-token"][1]
    stream.feed("ready\nusing " + token[:12])
    assert stream.flush().text == "ready\n"
    stream.feed(token[12:] + "\n")
    assert stream.flush().text == "using [redacted:huggingface-token]\n"


def test_endless_secret_is_bounded_and_never_shown():
    stream = RedactionStream(REDACTOR)
    run = "aB3xK9mQ" * 8192
    out = "".join(
        stream.feed(piece).text for piece in ["api_key=", *[run] * (2 * LONGEST // len(run)), " after the run\n"]
    )
    out += stream.finish().text
    assert "aB3xK9mQ" not in out
    assert out.endswith(" after the run\n")
    assert len(out) < 200
