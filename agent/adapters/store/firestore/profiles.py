"""Model profiles in the Firestore database of the incidents."""

from __future__ import annotations

import zlib

from agent.adapters.store.firestore.documents import Data, Documents, place
from agent.adapters.store.profile_json import from_json, to_json
from agent.errors import DependencyFailed
from agent.fit.checkpoint.checkpoint import ModelProfile


class FirestoreProfileShelf:
    """Keeps profiles as compressed JSON: one of a large checkpoint is longer than a document may be.

    Args:
        documents: The database of the incidents.
    """

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def put(self, profile: ModelProfile) -> None:
        """Keep a profile; see the port."""
        data: Data = {"name": profile.name, "read_at": profile.read_at, "body": zlib.compress(to_json(profile))}
        self._documents.put(place("profiles", profile.name), data)

    def get(self, name: str) -> ModelProfile | None:
        """The profile of this name; see the port."""
        found = self._documents.get(place("profiles", name))
        return None if found is None else self._read(found.data)

    def list(self) -> tuple[ModelProfile, ...]:
        """All profiles by name; see the port."""
        found = self._documents.select("profiles", order=(("name", False),))
        return tuple(self._read(f.data) for f in found)

    def _read(self, data: Data) -> ModelProfile:
        where = f"profile {data.get('name')!r} in Firestore {self._documents.name!r}"
        try:
            body = zlib.decompress(data["body"])
        except (KeyError, TypeError, zlib.error) as error:
            raise DependencyFailed(
                f"the {where} was not read",
                why=f"it is damaged: {error}",
                mend="read the checkpoint again: sre-agent models add SOURCE",
            ) from error
        return from_json(body, where=where)
