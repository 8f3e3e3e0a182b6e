"""Which model a name means: a profile read from a checkpoint, a bundled entry, or a checkpoint read right now."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from agent.catalogue.load_fit import ModelCatalogue
from agent.errors import InputRejected, SreError
from agent.fit.checkpoint.checkpoint import ModelProfile
from agent.fit.model_and_hardware import ModelFacts
from agent.ports.profiles import ProfileStore

if TYPE_CHECKING:
    from agent.settings import Settings

ReadCheckpoint = Callable[[str, str, Sequence[ModelFacts]], ModelProfile]
"""Source, name for the profile, bundled models -> profile."""

_REMOTE = ("gs://", "hf:", "https://", "http://")
_REPOSITORY: Final = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}", re.ASCII)

HUB_S: Final = 2.0
"""Longest that a question waits for the model hub, seconds, over everything that it is asked."""


class ModelHub:
    """Reads a repository of the model hub while a question waits, and stops asking once the hub was silent.

    Args:
        read: Source ("hf:owner/name") and name to profile.
        wait_s: Longest wait for one repository, seconds; a read that takes longer counts as silence.
    """

    def __init__(self, read: Callable[[str, str], ModelProfile], *, wait_s: float = HUB_S) -> None:
        self._read = read
        self._wait_s = wait_s
        self._silent = ""

    def facts(self, name: str) -> ModelFacts | str:
        """Facts of a repository, or one clause that says why the hub did not give them."""
        if self._silent:
            return self._silent
        found: list[ModelFacts | str] = []

        def ask() -> None:
            try:
                found.append(self._read(f"hf:{name}", name).facts)
            except SreError as error:
                found.append(f"the hub did not give {name}: {error.what}, {error.why}")

        # a thread, because neither looking a host up nor a slow answer can be given up in any other way
        asking = Thread(target=ask, name="model-hub", daemon=True)
        asking.start()
        asking.join(self._wait_s)
        if found:
            return found[0]
        self._silent = f"the hub did not answer within {self._wait_s:g} s"
        return self._silent


class KnownModels:
    """Finds models by every name the command line takes.

    Args:
        bundled: The catalogue's models.
        shelf: Profiles that were added.
        read: Reads the checkpoint at a place, under a name, beside the bundled models; keeps nothing.
        hub_s: Longest wait for the model hub, seconds; None never asks it.
        folders: Whether a name may be a folder of this machine.
    """

    def __init__(
        self,
        bundled: ModelCatalogue,
        shelf: ProfileStore,
        read: ReadCheckpoint,
        *,
        hub_s: float | None = None,
        folders: bool = True,
    ) -> None:
        self._folders = folders
        self._bundled = bundled
        self._shelf = shelf
        self._read = read
        self._hub = (
            None if hub_s is None else ModelHub(lambda source, name: self.read(source, as_name=name), wait_s=hub_s)
        )

    def find(self, name: str) -> ModelFacts:
        """Facts of the model of a name.

        A folder here is read at once. Otherwise a profile of this name or place wins over the bundled entry; a
        repository that is not bundled under its own name is read from the hub where that answers in time, and a known
        model that it resembles stands in where it does not; an address that nobody knows is read where it lies.

        Args:
            name: A Hugging Face id, a name given by ``models add``, a folder, a mounted path, gs://, hf: or https://.

        Returns:
            Facts; that the hub was read or was silent stands among the assumptions.

        Raises:
            InputRejected: Nobody knows it, or its checkpoint is hostile or incomplete.
            DependencyFailed: Shelf or source do not answer.
        """
        if self._folders and (Path(name) / "config.json").is_file():
            return self.read(name, as_name=name).facts
        profile = self.profile(name)
        if profile is not None:
            return profile.facts
        repository = name.removeprefix("hf:")
        if self._bundled.lists(repository):
            return self._bundled.find(repository)
        if self._hub is None or not _REPOSITORY.fullmatch(repository):
            return self._resembling(name, "")
        answer = self._hub.facts(repository)
        if isinstance(answer, str):
            return self._resembling(name, answer)
        kept = f"read from the hub just now and not kept: sre-agent models add hf:{repository} keeps it"
        return replace(answer, assumptions=(*answer.assumptions, kept))

    def _resembling(self, name: str, silence: str) -> ModelFacts:
        """The bundled model whose name resembles this one, or the checkpoint at this address."""
        repository = name.removeprefix("hf:")
        try:
            found = self._bundled.find(repository)
        except InputRejected as error:
            if name.startswith(_REMOTE) and not silence:
                return self.read(name, as_name=name).facts
            if not _REPOSITORY.fullmatch(repository):
                raise
            near, can_be_added, _ = error.hint.partition("add a checkpoint")
            raise InputRejected(
                error.what,
                why=f"{error.why}, and {silence}" if silence else error.why,
                hint=f"{near}add it with: sre-agent models add hf:{repository}" if can_be_added else near,
            ) from error
        return replace(found, assumptions=(silence, *found.assumptions)) if silence else found

    def profile(self, name: str) -> ModelProfile | None:
        """The added profile of this name, or of this place."""
        place = name.rstrip("/")
        return self._shelf.get(name) or next((held for held in self._shelf.list() if held.source == place), None)

    def read(self, source: str, *, as_name: str) -> ModelProfile:
        """Read a checkpoint; nothing is kept.

        Raises:
            InputRejected: Its files are hostile, incomplete or not there.
            DependencyFailed: The source does not answer.
        """
        return self._read(source, as_name, self._bundled.entries)

    def add(self, source: str, *, as_name: str) -> ModelProfile:
        """Read a checkpoint and keep its profile under a name."""
        profile = self.read(source, as_name=as_name)
        self._shelf.put(profile)
        return profile

    def added(self) -> tuple[ModelProfile, ...]:
        """All profiles that were added."""
        return self._shelf.list()


def known_models(bundled: ModelCatalogue, settings: Settings, *, folders: bool = True) -> KnownModels:
    """Known models of an installation.

    Args:
        bundled: The catalogue's models.
        settings: For the state's folder and the watched services' mounts.
        folders: Whether a name may be a folder of this machine.

    Raises:
        InputRejected: The store is in the cloud: profiles are kept beside the embedded store only.
    """
    from agent.adapters.store.sqlite.profiles import SqliteProfileShelf

    if not settings.embedded:
        raise InputRejected(
            "no profiles were looked up",
            why=f"the store {settings.store!r} does not keep profiles",
            hint="use STORE=sqlite:<folder>",
        )
    shelf = SqliteProfileShelf(settings.state / "profiles.sqlite")
    hub_s = None if settings.hub_offline else HUB_S
    return KnownModels(bundled, shelf, reader(settings), hub_s=hub_s, folders=folders)


def reader(settings: Settings) -> ReadCheckpoint:
    """Reads checkpoints with the caller's own tokens, mounted paths through the watched services."""

    def read(source: str, name: str, bundled: Sequence[ModelFacts]) -> ModelProfile:
        from agent.adapters.checkpoint.locate import Locator
        from agent.adapters.checkpoint.read import read_profile
        from agent.adapters.clock import SystemClock
        from agent.adapters.google.access_token import READ_STORAGE, access_token

        if settings.hub_offline and source.startswith("hf:"):
            raise InputRejected(
                f"the checkpoint {source[:200]!r} was not read",
                why="HF_HUB_OFFLINE is on, so the model hub is never asked",
                hint="switch it off, or give a folder or a bucket",
            )
        hub_token = settings.hub_token.get_secret_value() if settings.hub_token is not None else None
        locator = Locator(
            mounts=mounts(settings),
            google_token=lambda: access_token(READ_STORAGE),
            hub_token=lambda: hub_token,
            hub_url=settings.hub_url,
        )
        files = locator.open(source)
        try:
            return read_profile(files, name=name, read_at=SystemClock().now().isoformat(), bundled=bundled)
        finally:
            files.close()

    return read


def mounts(settings: Settings) -> Callable[[str], str | None]:
    """Paths inside the watched services, by the longest mount above them."""

    def resolve(path: str) -> str | None:
        if settings.services is None:
            return None
        from agent.core.service.services import parse_services

        known = {
            mount.rstrip("/"): bucket.rstrip("/")
            for service in parse_services(settings.services.read_text(encoding="utf-8")).services
            for mount, bucket in service.mounts.items()
        }
        above = [mount for mount in known if path == mount or path.startswith(mount + "/")]
        longest = max(above, key=len, default=None)
        return None if longest is None else known[longest] + path[len(longest) :]

    return resolve


def name_of(source: str) -> str:
    """The name a profile gets when none is given: the repository, else the last folder.

    Args:
        source: A folder, gs://bucket/folder, hf:owner/name[@revision], or the https address of a folder or of its
            config.json.

    Raises:
        InputRejected: The source has no folder to be named after.
    """
    if source.startswith("hf:"):
        return source[3:].partition("@")[0]
    path = urlsplit(source).path if "://" in source else str(Path(source).absolute())
    parts = [part for part in path.split("/") if part]
    if parts and parts[-1].endswith((".json", ".safetensors")):
        parts.pop()
    if not parts:
        raise InputRejected(
            f"the profile of {source[:200]!r} has no name",
            why="its path has no folder name",
            hint="give a name: --name NAME",
        )
    return parts[-1]


def summary_row(facts: ModelFacts, source: str) -> dict[str, Any]:
    """Return a model in a few words: name, family, size, quantisation, and where its facts come from."""
    return {
        "name": facts.name,
        "family": facts.family,
        "size": facts.size,
        "scheme": facts.quant.scheme,
        "checkpoint_bytes": facts.checkpoint_bytes,
        "source": source,
    }


def described(facts: ModelFacts, profile: ModelProfile | None) -> dict[str, Any]:
    """Return everything that is known of a model; of a bundled one ``profile`` is None."""
    return {
        **summary_row(facts, "bundled" if profile is None else profile.source),
        "read_at": None if profile is None else profile.read_at,
        "architecture": facts.architecture,
        "hidden": facts.hidden,
        "vocab": facts.vocab,
        "layers": facts.layer_count,
        "max_position": facts.max_position,
        "tied": facts.tied,
        "bytes_by_group": {group.value: size for group, size in facts.measured_bytes},
        "bytes_by_dtype": {} if profile is None else dict(profile.dtype_bytes),
        "tensors": None if profile is None else profile.tensors,
        "shards": None if profile is None else profile.shards,
        "quantised_groups": sorted(facts.quant.groups),
        "contradictions": [] if profile is None else list(profile.contradictions),
        "assumptions": list(facts.assumptions),
        "sources": list(facts.sources),
    }
