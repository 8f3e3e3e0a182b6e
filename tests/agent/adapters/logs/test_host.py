"""The log of a server here: nothing is lost at the end, nothing grows without one."""

from datetime import UTC, datetime
from pathlib import Path

from agent.adapters.logs import host
from agent.adapters.logs.host import Follower, HostLogs, StartLog
from agent.core.diagnosis.diagnosing import LogText

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


def told(follower: Follower, *, ended: bool = False) -> list[str]:
    return [line for piece in follower.pieces(ended=ended) for line in piece]


def test_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    """A line that is being written is handed out whole, once."""
    log = tmp_path / "log"
    follower = Follower(log)
    assert told(follower) == []
    log.write_bytes(b"one\ntwo\nthr")
    assert told(follower) == ["one", "two"]
    with log.open("ab") as file:
        file.write(b"ee\n")
    assert told(follower) == ["three"]
    assert told(follower, ended=True) == []


def test_the_last_line_of_a_crash_counts_without_its_end(tmp_path: Path) -> None:
    """What a dying process managed to write is a line too."""
    log = tmp_path / "log"
    log.write_bytes(b"one\nSegmentation fa")
    follower = Follower(log)
    assert told(follower) == ["one"]
    assert told(follower, ended=True) == ["Segmentation fa"]
    assert follower.offset == log.stat().st_size


def test_a_successor_goes_on_where_lines_were_handed_out(tmp_path: Path) -> None:
    """The kept offset never stands inside a line that nobody has seen."""
    log = tmp_path / "log"
    log.write_bytes(b"one\ntwo")
    first = Follower(log)
    assert told(first) == ["one"]
    log.write_bytes(b"one\ntwo\nthree\n")
    assert told(Follower(log, offset=first.offset)) == ["two", "three"]


def test_a_log_that_was_cut_is_read_from_its_start(tmp_path: Path) -> None:
    """Somebody else's rotation."""
    log = tmp_path / "log"
    log.write_bytes(b"one\ntwo\n")
    follower = Follower(log)
    told(follower)
    log.write_bytes(b"new\n")
    assert told(follower) == ["new"]


def test_the_middle_is_given_back_and_both_ends_stay(tmp_path: Path, monkeypatch) -> None:
    """The disk holds head and tail; not a byte of them moves, and the writer never notices."""
    monkeypatch.setattr(host, "HEAD_BYTES", 2**20)
    monkeypatch.setattr(host, "TAIL_BYTES", 2**20)
    log = tmp_path / "log"
    log.write_bytes(b"first line\n")
    follower = Follower(log)
    line = b"x" * 1023 + b"\n"
    with log.open("ab", buffering=0) as server:
        for _ in range(24):
            server.write(line * 1024)
            told(follower)
        server.write(b"the last words\n")
    assert told(follower) == ["the last words"]
    assert log.stat().st_size == 11 + 24 * 2**20 + 15
    assert log.stat().st_blocks * 512 < 6 * 2**20
    found = HostLogs(lambda _: (StartLog("r", "i", NOW, log),)).instance_log(
        "s", revision="r", instance=None, until=NOW
    )
    assert found is not None
    assert (found.lines[0].text, found.lines[-2].text, found.complete) == ("first line", "the last words", True)


def test_a_line_without_an_end_is_cut(tmp_path: Path) -> None:
    """Memory does not grow with what never ends."""
    log = tmp_path / "log"
    log.write_bytes(b"y" * (3 * 2**20))
    lines = told(Follower(log))
    assert lines
    assert max(map(len, lines)) <= host.LINE_BYTES


def test_the_named_start_is_read_and_no_other(tmp_path: Path) -> None:
    """Of two starts each has its own log; without a name the newest counts."""
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"log of {name}\n")
    logs = HostLogs(lambda _: tuple(StartLog(n, f"i{n}", NOW, tmp_path / n) for n in ("a", "b")))

    def first(revision: str | None, instance: str | None = None) -> str | None:
        found = logs.instance_log("s", revision=revision, instance=instance, until=NOW)
        return found.lines[0].text if found else None

    assert (first("a"), first("b"), first(None), first("c")) == ("log of a", "log of b", "log of b", None)
    assert first(None, "ia") == "log of a"


def test_of_many_lines_both_ends_are_kept_in_order(tmp_path: Path) -> None:
    """The start tells the phase, the end the cause; times keep the order."""
    log = tmp_path / "log"
    log.write_text("".join(f"{n}\n" for n in range(5000)))
    found = HostLogs(lambda _: (StartLog("r", "i", NOW, log),)).instance_log(
        "s", revision="r", instance="i", until=NOW, limit=100
    )
    assert found is not None
    assert [line.text for line in found.lines[:2]] == ["0", "1"]
    assert found.lines[-2].text == "4999"
    assert [line.at for line in found.lines] == sorted(line.at for line in found.lines)
    assert len(found.lines) == 100


def one_start(log: Path) -> HostLogs:
    """The logs of a machine with one start."""
    start = StartLog(revision="lamp-1", instance="lamp-1", began_at=NOW, path=log)
    return HostLogs(lambda _: (start,))


def test_a_line_behind_the_part_left_out_is_counted_in_the_log_itself(tmp_path: Path) -> None:
    """Line 9,999 of the file is called so, however few lines are kept: short lines, long ones, and both."""
    for name, line in (("short", "line {}"), ("long", "line {} " + "x" * 2000), ("mixed", "line {}")):
        log = tmp_path / name
        texts = [line.format(n) for n in range(1, 10_000)]
        if name == "mixed":
            texts[:20] = [f"line {n} " + "x" * 65_000 for n in range(1, 21)]
        log.write_text("\n".join(texts))
        found = one_start(log).instance_log("lamp", revision=None, instance=None, until=NOW)
        assert found is not None
        kept = LogText(
            lines=tuple((one.at, one.text) for one in found.lines),
            complete=found.complete,
            cut_after=found.cut_after,
            cut_lines=found.cut_lines,
        )
        assert len(found.lines) <= 2000
        for number, one in enumerate(found.lines, start=1):
            assert kept.ref(number) == f"log:{one.text.split()[1]}", name
        assert found.lines[-1].text.split()[1] == "9999"


def test_nobody_counts_the_lines_of_a_log_whose_middle_was_given_back(tmp_path: Path, monkeypatch) -> None:
    """Then a line is named by its place before the end."""
    monkeypatch.setattr(host, "HEAD_BYTES", 2**20)
    monkeypatch.setattr(host, "TAIL_BYTES", 4 * 2**20)
    log = tmp_path / "log"
    log.write_text("\n".join(f"line {n} " + "x" * 1000 for n in range(20_000)))
    told(Follower(log))
    found = one_start(log).instance_log("lamp", revision=None, instance=None, until=NOW)
    assert found is not None
    assert found.cut_after is not None
    assert found.cut_lines is None


def test_a_log_that_is_kept_whole_has_no_part_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\ntwo\n")
    found = one_start(log).instance_log("lamp", revision=None, instance=None, until=NOW)
    assert found is not None
    assert (found.cut_after, found.cut_lines) == (None, None)


def test_of_empty_lines_in_a_row_one_is_handed_out(tmp_path: Path) -> None:
    """A flood of them says nothing more; where a reader goes on is counted in bytes and stays the same."""
    log = tmp_path / "log"
    log.write_bytes(b"one\n\ntwo" + b"\n" * 100_000 + b"three\n")
    follower = Follower(log)
    assert told(follower) == ["one", "", "two", "", "three"]
    assert follower.offset == log.stat().st_size
