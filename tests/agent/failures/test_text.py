"""Lines, colours, and the most telling of them."""

from agent.failures.text import MAX_LINE_CHARS, clean, looks_loud, records_of, split_lines, telling_lines


def test_colours_go_also_where_the_escape_is_spelled_out() -> None:
    assert clean("\x1b[1;31mred\x1b[0m ^[[32mgreen\\u001b[0m") == "red green"
    assert clean("\x1b]8;;http://x\x07link\x1b]8;;\x07") == "link"


def test_a_long_line_is_cut_and_a_carriage_return_ends_a_line() -> None:
    assert split_lines("10%\r20%\r\nend") == ["10%", "20%", "end"]
    assert len(split_lines("a" * 99_999)[0]) == MAX_LINE_CHARS


def test_an_exception_tells_more_than_a_loud_line_and_a_frame_least() -> None:
    lines = ["INFO fine", '  File "/x.py", line 3', "failed to do it", "ValueError: no such lamp", ""]
    assert telling_lines(lines, most=2) == [3, 2]


def test_warnings_and_notes_are_not_loud() -> None:
    assert not looks_loud("WARNING 06-06 [a.py:1] Failed to import from vllm._C")
    assert not looks_loud("Ignore import error when loading x")
    assert looks_loud("RuntimeError: no lamp")


def test_records_on_one_line_come_apart_and_a_line_of_one_record_stays() -> None:
    first, second = "INFO 05-06 07:08:09 a.py:1] fine", "(Worker pid=7) ERROR 05-06 07:08:10 b.py:2] Traceback: x"
    assert records_of(f"{first} {second}") == [first, second]
    assert records_of(f"pod-a | {second}") == [f"pod-a | {second}"]
    assert records_of("ERROR at 07:08:09 and at 07:08:10: again") == ["ERROR at 07:08:09 and at 07:08:10: again"]
