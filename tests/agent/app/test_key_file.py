"""The key that signs decisions: whole or not there, its owner's alone, and one for all who start at once."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agent.app.key_file import KEY_BYTES, own_key
from agent.errors import DependencyFailed, SettingsRejected

CHILD = """
import sys
from pathlib import Path
from agent.app.key_file import own_key
print("ready", flush=True)
sys.stdin.readline()
print(own_key(Path(sys.argv[1])).hex())
"""


def test_it_is_made_once_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "state" / "receipt.key"
    key = own_key(path)
    assert len(key) == KEY_BYTES
    assert own_key(path) == key == path.read_bytes()
    assert own_key(tmp_path / "another.key") != key
    assert [p.name for p in path.parent.iterdir()] == ["receipt.key"]


def test_it_is_its_owners_alone_from_the_first_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the process lets others read; the file is looked at while it is still empty."""
    seen = []
    real = os.fdopen

    def looked_at(file, *args):
        found = os.fstat(file)
        seen.append((stat.S_IMODE(found.st_mode), found.st_size))
        return real(file, *args)

    monkeypatch.setattr(os, "fdopen", looked_at)
    before = os.umask(0)
    try:
        own_key(tmp_path / "receipt.key")
    finally:
        os.umask(before)
    assert seen == [(0o600, 0)]
    assert stat.S_IMODE((tmp_path / "receipt.key").stat().st_mode) == 0o600


def test_processes_that_start_at_once_get_the_same_key(tmp_path: Path) -> None:
    path = tmp_path / "receipt.key"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    keys = {child.communicate(timeout=30)[0].strip() for child in children}
    assert keys == {path.read_bytes().hex()}


def test_threads_that_start_at_once_get_the_same_key_every_time(tmp_path: Path) -> None:
    for number in range(40):
        path, begin, keys = tmp_path / f"{number}.key", threading.Barrier(6), []

        def start(path=path, begin=begin, keys=keys) -> None:
            begin.wait()
            keys.append(own_key(path))

        threads = [threading.Thread(target=start) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(keys) == 6
        assert set(keys) == {path.read_bytes()}


@pytest.mark.parametrize("size", [0, 1, KEY_BYTES - 1])
def test_half_a_key_is_refused_and_never_replaced(tmp_path: Path, size: int) -> None:
    """Another key would make every approval so far a forgery; that is for a person to say."""
    path = tmp_path / "receipt.key"
    path.write_bytes(b"x" * size)
    with pytest.raises(SettingsRejected, match=f"it has {size} bytes, a key has 32"):
        own_key(path)
    assert path.read_bytes() == b"x" * size


def test_a_place_that_cannot_hold_a_file_is_said_in_our_words(tmp_path: Path) -> None:
    (tmp_path / "folder.key").mkdir()
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "folder.key", tmp_path / "file" / "receipt.key"):
        with pytest.raises(DependencyFailed, match="was not opened"):
            own_key(path)


def test_what_a_process_left_that_died_while_writing_is_no_key(tmp_path: Path) -> None:
    path = tmp_path / "receipt.key"
    (tmp_path / ".receipt.key.0123456789abcdef").write_bytes(b"half")
    assert len(own_key(path)) == KEY_BYTES
