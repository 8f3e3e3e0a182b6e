"""What a tool keeps of others' text between two pages: the clean lines, and of the rest no more than a digest."""

import gc

from agent.entrypoints.mcp.tools.result import untrusted

SECRET = "hf_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7"


def redact(text: str) -> str:
    return text.replace(SECRET, "[redacted]")


def test_pages_of_one_text_are_redacted_once():
    asked = []

    def counted(text: str) -> str:
        asked.append(text)
        return redact(text)

    lines = [f"line {n}" for n in range(2_000)]
    first = untrusted(lines, redact=counted)
    second = untrusted(lines, redact=counted, offset=first.next_offset)
    assert second.lines[0] == lines[first.next_offset]
    assert len(asked) == 1


def test_another_text_is_redacted_anew():
    assert untrusted([f"a {SECRET}"], redact=redact).lines == ("a [redacted]",)
    assert untrusted([f"b {SECRET}"], redact=redact).lines == ("b [redacted]",)


def test_nothing_keeps_the_text_as_it_was():
    marker = f"only-here-{SECRET}"
    untrusted(["before", marker], redact=redact)
    whole = f"before\n{marker}"
    parts = (part for each in gc.get_objects() if type(each) in {tuple, list} for part in each)
    assert not any(type(part) is str and part == whole for part in parts)
