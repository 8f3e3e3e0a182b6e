"""Where model profiles lie once they are read, so that functions and commands see the same ones."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from agent.fit.checkpoint.checkpoint import ModelProfile


@runtime_checkable
class ProfileStore(Protocol):
    """Profiles by name; the last one put wins."""

    def put(self, profile: ModelProfile) -> None:
        """Keep a profile under its name, in place of an earlier one; durable when it returns.

        Raises:
            DependencyFailed: The shelf cannot be written.
        """
        ...

    def get(self, name: str) -> ModelProfile | None:
        """The profile of this name; None if there is none.

        Raises:
            DependencyFailed: The shelf cannot be read, or holds something that is no profile.
        """
        ...

    def list(self) -> tuple[ModelProfile, ...]:
        """All profiles, ordered by name.

        Raises:
            DependencyFailed: The shelf cannot be read, or holds something that is no profile.
        """
        ...
