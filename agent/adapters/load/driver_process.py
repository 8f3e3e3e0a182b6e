"""One run of a load generator: a session of processes, a folder for its files, and how it ends."""

import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from agent.errors import DependencyFailed, InputRejected
from agent.ports.load import LoadResult

PASSED_ON: Final = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE"),
    *("HF_HOME", "HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE"),
    *("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"),
)
TAIL_BYTES: Final = 4000
TAIL_LINES: Final = 3
# Standard input is a pipe whose other end only we hold: it ends when we do, by kill -9 too, and the group with it.
ENDS_WITH_US: Final = 'exec 3<&0 </dev/null; (read -r _ <&3; kill -9 0) & exec 3<&-; "$@"'


class DriverProcess:
    """A generator at work; see :class:`agent.ports.load.LoadRun`. It ends with the process that started it.

    Args:
        title: Names it in errors.
        words: The command; ``{folder}`` stands for the folder of its files.
        files: Files to lay there before, by name; only this user can read them.
        env: Added to what is passed on of our own environment.
        read: Reads the result from the folder.

    Raises:
        DependencyFailed: It cannot be started.
    """

    def __init__(
        self,
        title: str,
        words: Sequence[str],
        *,
        env: Mapping[str, str],
        read: Callable[[Path], LoadResult],
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        self._title, self._read = title, read
        self._result: LoadResult | None = None
        self._folder = _work_folder(title)
        folder = Path(self._folder.name)
        try:
            for name, text in (files or {}).items():
                (folder / name).write_bytes(text.replace(b"{folder}", str(folder).encode()))
            with (folder / "driver.log").open("wb") as log:
                self._process = subprocess.Popen(  # noqa: S603 - the shell reads our line, the words are its arguments
                    ["/bin/sh", "-c", ENDS_WITH_US, "sh", *_command(words, folder)],
                    cwd=folder,
                    env=_environment(env),
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            self._folder.cleanup()
            raise _not_started(title, error) from error

    def result(self) -> LoadResult | None:
        """See the port."""
        if self._result is None:
            code = self._process.poll()
            if code is None:
                return None
            self._end_group()
            try:
                if code != 0:
                    raise self._failed(f"it ended with exit code {code}{self._last_lines()}")
                self._result = self._read(Path(self._folder.name))
            except InputRejected as error:
                raise self._failed(error.cause) from error
            except (OSError, KeyError, TypeError, ValueError, IndexError) as error:
                raise self._failed(f"its result was not understood ({type(error).__name__}: {error})") from error
            finally:
                self._folder.cleanup()
        return self._result

    def stop(self) -> None:
        """See the port."""
        self._end_group()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        self._folder.cleanup()

    def _end_group(self) -> None:
        """End every process of its session; the group outlives its leader."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _last_lines(self) -> str:
        raw = (Path(self._folder.name) / "driver.log").read_bytes()[-TAIL_BYTES:]
        lines = [line.strip() for line in raw.decode("utf-8", "replace").splitlines() if line.strip()]
        return f"; its last lines: {' | '.join(lines[-TAIL_LINES:])}" if lines else ""

    def _failed(self, why: str) -> DependencyFailed:
        return DependencyFailed(
            f"{self._title} failed",
            why=why,
            hint="fix it, then rerun the same command: stored cells are kept",
        )


def _command(words: Sequence[str], folder: Path) -> list[str]:
    """Return the words with the folder in them; a program that is not there is said before a shell says it."""
    if shutil.which(words[0]) is None:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    return [word.replace("{folder}", str(folder)) for word in words]


def _work_folder(title: str) -> TemporaryDirectory[str]:
    try:
        return TemporaryDirectory(prefix="sre-sweep-")
    except OSError as error:
        raise _not_started(title, error) from error


def _not_started(title: str, error: OSError) -> DependencyFailed:
    return DependencyFailed(
        f"{title} was not started",
        why=str(error.strerror or error),
        hint="see which driver is found: sre-agent sweep --help; install one: sre-agent sweep --install-driver",
    )


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return what a driver gets of our environment: no settings and no secrets of ours."""
    ours = {name: value for name in PASSED_ON if (value := os.environ.get(name)) is not None}  # noqa: TID251 - passed on
    return {**ours, **more}


def version_of(title: str, words: Sequence[str], *, prefix: str) -> str:
    """Return the version that a command prints after ``prefix``.

    Raises:
        DependencyFailed: It does not run, or prints something else.
    """
    try:
        done = subprocess.run(  # noqa: S603 - the words are ours, no shell reads them
            list(words), env=_environment({}), capture_output=True, timeout=120, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _no_version(title, str(error)) from error
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    found = next((line.removeprefix(prefix).strip() for line in lines if line.startswith(prefix)), "")
    if done.returncode != 0 or not found or len(found) > 80:
        raise _no_version(title, f"it ended with exit code {done.returncode} and named no version")
    return found


def _no_version(title: str, why: str) -> DependencyFailed:
    return DependencyFailed(
        f"{title} does not run", why=why, hint="reinstall it, or use guidellm: sre-agent sweep --install-driver"
    )
