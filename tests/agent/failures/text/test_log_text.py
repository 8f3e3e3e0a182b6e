"""Lines, colours, and the most telling of them."""

import pytest

from agent.failures.text.log_text import (
    MAX_LINE_CHARS,
    clean,
    continues_warning,
    failure_candidates,
    is_error_line,
    is_failure_candidate,
    is_note,
    is_platforms_error,
    is_warning,
    looks_like_failure,
    most_informative_lines,
    records_of,
    split_lines,
    unwrapped,
)
from agent.failures.text.streams import body_of


def test_colours_go_also_where_the_escape_is_spelled_out() -> None:
    assert clean("\x1b[1;31mred\x1b[0m ^[[32mgreen\\u001b[0m") == "red green"
    assert clean("\x1b]8;;http://x\x07link\x1b]8;;\x07") == "link"


def test_a_long_line_is_cut_and_a_carriage_return_ends_a_line() -> None:
    assert split_lines("10%\r20%\r\nend") == ["10%", "20%", "end"]
    assert len(split_lines("a" * 99_999)[0]) == MAX_LINE_CHARS


def test_an_exception_tells_more_than_a_loud_line_and_a_frame_least() -> None:
    lines = ["INFO fine", '  File "/x.py", line 3', "failed to do it", "ValueError: no such lamp", ""]
    assert most_informative_lines(lines, most=2) == [3, 2]


def test_warnings_and_notes_are_not_loud() -> None:
    assert not looks_like_failure("WARNING 06-06 [a.py:1] Failed to import from vllm._C")
    assert not looks_like_failure("Ignore import error when loading x")
    assert not looks_like_failure("/srv/lamp.py:7: RuntimeWarning: Failed to read the lamp:")
    assert not looks_like_failure('time="2031-05-06" level=warning msg="cannot read the lamp"')
    assert looks_like_failure("RuntimeError: no lamp")


@pytest.mark.parametrize(
    ("lines", "goes_on"),
    [
        (["/srv/lamp.py:7: UserWarning: ", "The lamp is dim."], True),
        (["/srv/lamp.py:7: UserWarning: ", "The lamp is dim.", "LampError: the lamp is out"], False),
        (["/srv/lamp.py:7: UserWarning: ", "The lamp is dim.", "  warnings.warn(", "The lamp is out."], False),
        (["web-1  | /srv/lamp.py:7: UserWarning: ", "web-2  | The lamp is out."], False),
        (["The lamp is lit.", "The lamp is out."], False),
    ],
)
def test_a_warning_goes_on_below_its_head(lines: list[str], goes_on: bool) -> None:
    assert continues_warning(lines, len(lines) - 1) is goes_on


def test_records_on_one_line_come_apart_and_a_line_of_one_record_stays() -> None:
    first, second = "INFO 05-06 07:08:09 a.py:1] fine", "(Worker pid=7) ERROR 05-06 07:08:10 b.py:2] Traceback: x"
    assert records_of(f"{first} {second}") == [first, second]
    assert records_of(f"pod-a | {second}") == [f"pod-a | {second}"]
    assert records_of("ERROR at 07:08:09 and at 07:08:10: again") == ["ERROR at 07:08:09 and at 07:08:10: again"]


@pytest.mark.parametrize(
    "line",
    [
        "E0506 07:08:09.123456       1 lamp.go:25] it is dark",
        'time="2031-05-06" level=error msg="it is dark"',
        "upstream reset: it is dark",
        "builtins.OddError",
        "(raylet) [2031-05-06 07:08:09,123 E 7 9] (raylet) lamp.cc:3: it is dark",
        "[2031-05-06 07:08:09,123 C 7 9] (raylet) lamp.cc:3: it is dark",
        "2031/05/06 07:08:09 ERR it is dark lamp=3",
        "2031-05-06T07:08:09 FTL it is dark lamp=3",
    ],
)
def test_a_failure_candidate_is_found_among_many_lines(line: str) -> None:
    assert list(failure_candidates(["INFO all is well", line, "so it is", line])) == [1, 3]


@pytest.mark.parametrize(
    "line",
    [
        "INFO 05-06 07:08:09 [a.py:1] the lamp failed and was lit again",
        '{"level":"info","msg":"timeout"}',
        '    raise LampError("out")',
    ],
)
def test_notes_and_source_lines_are_no_failure_candidates(line: str) -> None:
    assert list(failure_candidates([line])) == []


@pytest.mark.parametrize(
    ("line", "alarm"),
    [
        ("(EngineCore pid=7) ERROR 05-06 07:08:09 [lamp.py:3] the lamp is out", True),
        ("(EngineCore pid=7) ERROR 05-06 07:08:09 [lamp.py:3] Traceback (most recent call last):", True),
        ('(EngineCore pid=7) ERROR 05-06 07:08:09 [lamp.py:3]   File "/srv/lamp.py", line 3, in light', False),
        ("(EngineCore pid=7) ERROR 05-06 07:08:09 [lamp.py:3]     ^^^^^^^", False),
        ("(EngineCore pid=7) ERROR 05-06 07:08:09 [lamp.py:3] lamp.OutError", True),
        ("ERROR 05-06 07:08:09 lamp.py:3]     light(lamp)", False),
        ("[rank0]: LampError: out", True),
        ("WARNING 05-06 07:08:09 [lamp.py:3] LampError: out", False),
        ("the lamp was refused", False),
    ],
)
def test_an_alarm_is_a_line_that_calls_itself_an_error_and_no_line_inside_a_traceback(line: str, alarm: bool) -> None:
    assert is_error_line(line) is alarm


def test_a_number_that_is_set_to_another_failed_nothing() -> None:
    assert not is_failure_candidate("[05-06 07:08:09] Max running lamps is reset to 48 for speculation.")
    assert is_failure_candidate("[05-06 07:08:09] connection reset by lamp")


def test_source_that_raises_is_no_failure_whoever_wrote_it() -> None:
    assert not is_failure_candidate("    raise KeyboardInterrupt()")
    assert not is_failure_candidate("(APIServer pid=9)     raise KeyboardInterrupt()")
    assert is_failure_candidate("(APIServer pid=9) LampError: out")


@pytest.mark.parametrize(
    ("line", "may_be"),
    [
        ("Failed requests:                         0", False),
        ("Failed requests:                         3", True),
        ("errors=0 failed = 0", False),
        ("Failed: 0x7f error of the lamp", True),
        ("Lamps failed: 0 of 2 are lit", True),
        ("Lamps failed: 0/2 are lit", True),
        ("failed: 0, refused: 0", False),
        ("failed: 0, 12 refused", True),
        ("ERROR lamp: lamps failed: 0, errors: 12 of 12 lost", True),
        ("Timeout set to: 10800 seconds", False),
        ("options ndots:5 timeout:2", False),
        ("Timeout: lamp 3 did not answer", True),
        ("Timeout: 3 ranks did not answer", True),
        ("Timeout: 300s while waiting for the engine", True),
        ("Timeout: 10 of 10 workers", True),
        ("Timeout set to 600 s was reached", True),
        ("CRITICAL lamp: lamp 3 vanished; errors: 0", True),
        ('level=error msg="lamp 3 vanished" errors: 0', True),
        ("lamp[123]: error: it is dark", True),
        ("Lamp: error: it is dark", True),
        ("error: it is dark", True),
        ("Error: it is dark", True),
        ("web-1  | error: it is dark", True),
        ("2031-05-06T07:08:09Z error: it is dark", True),
        ("2031/05/06 07:08:09 [error] 31#31: *5 it is dark", True),
        ("May  6 07:08:09 host-a Lamp[123]: error: it is dark", True),
        ("INFO lamp[123]: error: it was dark", False),
        ("a lamp may show [error] or Error: or none", False),
        ("slurmstepd: error: *** JOB 7 ON lamp1 DUE TO LAMPS ***", True),
        ("the lamp shows error: none", False),
        ("Invalid device: 0", True),
        ("Invalid rank: 0", True),
        ("invalid argument: 0.0", True),
        ("Invalid bus address: 0", True),
        ("failed worker: 0", True),
        ("Invalid lamps: 0", False),
        ("Invalid: 0.000", False),
        ("lit: 9, invalid: 0", False),
        ("error count: 0", False),
        ("the lamp died", True),
        ("terminate called after throwing an instance of 'lamp'", True),
    ],
)
def test_a_count_that_is_none_is_no_failure_and_a_program_may_call_its_line_an_error(line: str, may_be: bool) -> None:
    assert is_failure_candidate(line) is may_be
    assert list(failure_candidates([line])) == [0] * may_be


@pytest.mark.parametrize(
    ("head", "level"),
    [
        ("2031/05/06 07:08:09 {} ", {"INF": "note", "DBG": "note", "WRN": "warning", "ERR": "error", "FTL": "error"}),
        ("[2031-05-06 07:08:09,123 {} 7 9] (raylet) ", {"I": "note", "D": "note", "W": "warning", "E": "error"}),
        ("0.03.569.821 {} srv  update_slots: ", {"I": "note", "D": "note", "W": "warning", "E": "error"}),
        ("{}0506 07:08:09.123456       1 lamp.go:25] ", {"I": "note", "W": "warning", "E": "error", "F": "error"}),
        ("[rank3]:{}0506 07:08:09.123456 7 torch/lamp.py:9] ", {"I": "note", "D": "note", "W": "warning"}),
    ],
    ids=["zerolog", "ray", "llama.cpp", "klog", "torch"],
)
def test_levels_of_three_letters_and_of_one_are_levels(head: str, level: dict[str, str]) -> None:
    """The time before them may have been taken off as a collector's, and a collector's name stand before them."""
    for short, meant in level.items():
        whole = head.format(short) + "the lamp failed"
        for line in (whole, body_of(whole), f"web-1  | {whole}", f"May 06 07:08:09 lamp-3 serve[7]: {whole}"):
            said = {"note": is_note(line), "warning": is_warning(line), "error": is_error_line(line)}
            assert [name for name, holds in said.items() if holds] == [meant], line
            assert is_failure_candidate(line) is (meant == "error"), line


def test_an_error_of_a_ranks_compiler_is_none_of_the_platform() -> None:
    """What the catalogue says of a Python program is said of it too."""
    line = "[rank3]:E0506 07:08:09.123456 7 torch/lamp.py:9] the lamp failed"
    assert (is_failure_candidate(line), is_platforms_error(line)) == (True, False)


@pytest.mark.parametrize("level", "IWD")
@pytest.mark.parametrize(
    "head",
    ["2031-05-06 07:08:09 ERROR agent: worker lost, tail of its log: ", "RuntimeError: lamp: ", 'level=error msg="'],
)
def test_the_level_of_a_quoted_line_is_not_that_of_the_line(head: str, level: str) -> None:
    line = f"{head}it is dark: {level}0506 07:08:09.123456 7 lamp.cc:3] the lamp is lit"
    assert (is_note(line), is_failure_candidate(line)) == (False, True)


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ('time="2031-05-06T07:08:09Z" level=info msg="the lamp is lit"', True),
        ('{"level": "info", "msg": "the lamp is lit"}', True),
        ("2031-05-06T07:08:09.123Z\tinfo\tthe lamp is lit", True),
        ("2031/05/06 07:08:09 [info] 31#31: the lamp is lit", True),
        ("info: the lamp is lit", True),
        ('time="2031-05-06T07:08:09Z" level=error msg="no info of the lamp"', False),
        ('level=error msg="cannot write (debug) of the lamp"', False),
        ("E0506 07:08:09.123456       1 lamp.go:25] (info) of the lamp is lost", False),
        ("web-1  | E0506 07:08:09.123456       1 lamp.go:25] the lamp is lost", False),
        ("web-1  | I0506 07:08:09.123456       1 lamp.go:25] the lamp failed and was lit again", True),
        ("cannot get the info of the lamp", False),
        ("KeyError: 'info'", False),
        ("[2031/05/06 07:08:09] [ info] [engine] the lamp is lit", True),
        ("[2031-05-06 07:08:09.123][1][info][main] the lamp is lit", True),
        ("2031-05-06 07:08:09,123 debug the lamp failed and was lit again", True),
        ("web-1  | 2031-05-06T07:08:09Z info the lamp is lit", True),
        ("lamp[77]: info: the lamp is lit", True),
        ("RuntimeError: the lamp is out (trace id 7)", False),
        ("Error: the lamp is out, process exiting (trace id 4f)", False),
        ("Process failed with code 1 trace follows", False),
        ("terminate called after throwing an instance of 'lamp' (trace below)", False),
        ("backend error: lamp 3 info lost, server crashed", False),
        ("RuntimeError: lamp 2 info channel closed, engine aborted", False),
        ("the lamp died [info: none]", False),
        ("info lost: the lamp is out", False),
    ],
)
def test_a_word_of_the_message_is_no_level(line: str, note: bool) -> None:
    assert is_note(line) is note


@pytest.mark.parametrize(
    "line",
    [
        'level=error msg="dark"',
        '{"ts": 7, "level": "error", "msg": "dark"}',
        "E0506 07:08:09.123456       1 lamp.go:25] dark",
        "07:08:09 ERR dark",
        "[2031-05-06 07:08:09,123 E 7 9] dark",
    ],
)
def test_an_error_of_the_platform_is_known_by_its_level_and_a_setting_is_none(line: str) -> None:
    assert is_platforms_error(line)
    assert not is_platforms_error("Start lamp with --log-severity=error and log_level=error")
    assert not is_platforms_error('lamp settings: {"logging":{"severity":"error"}}')


@pytest.mark.parametrize(
    "advice", ["run with NCCL_DEBUG=INFO for details", "set `VLLM_LOGGING_LEVEL=DEBUG`", "set the log level = DEBUG"]
)
def test_a_level_that_an_error_advises_is_not_its_own(advice: str) -> None:
    line = f"RuntimeError: the lamp went out ({advice})"
    assert is_failure_candidate(line)
    assert is_error_line(line)
    assert not is_note(line)
    assert is_note(f"INFO 05-06 07:08:09 [lamp.py:3] {advice}")


@pytest.mark.parametrize(
    "level",
    ["LEVEL=INFO", "time=07:08:09 LOG_LEVEL=DEBUG", "log_level=WARNING logger=lamp", "msg='it is out' LEVEL=INFO"],
)
def test_a_level_that_a_structured_logger_writes_is_its_own(level: str) -> None:
    line = f"{level} RuntimeError: the lamp went out"
    assert not is_failure_candidate(line)
    assert not is_error_line(line)


def test_a_sentence_that_a_terminal_broke_stands_whole_again() -> None:
    """What a program began anew, and the source that a traceback quotes, is no part of the sentence above."""
    broken = ["ValueError: Free memory on device lamp:0 is less", "than the desired lamp share (0.95)."]
    assert unwrapped(broken) == [" ".join(broken), ""]
    apart = [
        "INFO the lamp is lit",
        "INFO the lamp is out",
        '  File "lamp.py", line 3, in run lamps',
        "    raise Lamp(3)",
    ]
    assert unwrapped(apart) == apart
