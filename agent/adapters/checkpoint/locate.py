"""From what a person writes as a checkpoint's place to a reader of its files."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from agent.adapters.checkpoint.http import HttpCheckpoint
from agent.adapters.checkpoint.read import plain
from agent.errors import DependencyFailed, InputRejected
from agent.ports.checkpoint import CheckpointFileMissing, CheckpointFiles, Piece

_BUCKET: Final = re.compile(r"gs://([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])(?:/(.*))?")
_REPO: Final = re.compile(r"hf:([\w.-]{1,96}(?:/[\w.-]{1,96})?)(?:@([\w./-]{1,128}))?", re.ASCII)


def _nothing(_path: str) -> str | None:
    return None


@dataclass(frozen=True, kw_only=True)
class Locator:
    """Knows the addresses and how to ask for the caller's tokens.

    Attributes:
        mounts: From a path inside a service ("/mnt/models/x") to where its volume lies ("gs://bucket/x"); None
            for a path that no service mounts.
        google_token: The caller's access token for Cloud Storage; None reads what is public.
        hub_token: The caller's token for the hub.
        storage_url, hub_url: Addresses of Cloud Storage and of the hub.
    """

    mounts: Callable[[str], str | None] = _nothing
    google_token: Callable[[], str | None] | None = None
    hub_token: Callable[[], str | None] | None = None
    storage_url: str = "https://storage.googleapis.com"
    hub_url: str = "https://huggingface.co"

    def open(self, source: str) -> CheckpointFiles:
        """Find the reader for a place.

        Args:
            source: A folder, gs://bucket/folder, hf:owner/name[@revision], or the https address of a folder or
                of its config.json.

        Returns:
            A reader; close it when done.

        Raises:
            InputRejected: No such folder, or a place that is written wrongly.
        """
        if source.startswith("gs://"):
            return self._bucket(source)
        if source.startswith("hf:"):
            return self._hub(source)
        if "://" in source:
            folder = source.rpartition("/")[0] if source.endswith((".json", ".safetensors")) else source
            return HttpCheckpoint(folder)
        folder_here = Path(source)
        if folder_here.is_dir():
            return LocalCheckpoint(folder_here)
        if folder_here.is_file():
            return LocalCheckpoint(folder_here.parent)
        volume = self.mounts(source)
        if volume is not None and volume.startswith("gs://"):
            return self._bucket(volume)
        raise InputRejected(
            f"no checkpoint was found at {source!r}",
            why="it is not a folder on this machine, and no service mounts a volume there",
            hint="give a folder, gs://bucket/folder, hf:owner/name or an https address",
        )

    def _bucket(self, source: str) -> CheckpointFiles:
        match = _BUCKET.fullmatch(source.rstrip("/"))
        if match is None or ".." in source:
            raise _unreadable(source, "gs://bucket/folder")
        folder = quote((match[2] or "").strip("/"))
        base = "/".join(part for part in (self.storage_url, match[1], folder) if part)
        return HttpCheckpoint(base, source=source.rstrip("/"), token=self.google_token)

    def _hub(self, source: str) -> CheckpointFiles:
        match = _REPO.fullmatch(source)
        if match is None or ".." in source:
            raise _unreadable(source, "hf:owner/name or hf:owner/name@revision")
        base = f"{self.hub_url}/{match[1]}/resolve/{quote(match[2] or 'main', safe='')}"
        return HttpCheckpoint(base, source=source, token=self.hub_token)


def _unreadable(source: str, want: str) -> InputRejected:
    return InputRejected(
        f"the place {source[:200]!r} was not read", why="its form is not known", hint=f"give it as {want}"
    )


class LocalCheckpoint:
    """Reads ranges of the files of one folder; links are followed, as the hub's own cache is made of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def source(self) -> str:
        """The folder."""
        return str(self._folder)

    def read(self, name: str, *, start: int, length: int) -> Piece:
        """Read part of a file; see the port."""
        path = self._folder / plain(name)
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                raise InputRejected(f"{str(path)!r} was not read", why="it is no regular file", hint="name the folder")
            with path.open("rb") as file:
                file.seek(start)
                return Piece(data=file.read(length), file_bytes=status.st_size)
        except FileNotFoundError as error:
            raise CheckpointFileMissing(
                f"{str(path)!r} was not read", why="there is no such file", hint="name the checkpoint's folder"
            ) from error
        except OSError as error:
            raise DependencyFailed(
                f"{str(path)!r} was not read",
                why=error.strerror or type(error).__name__,
                hint="check the disk or mount",
            ) from error

    def close(self) -> None:
        """Nothing is held open."""
