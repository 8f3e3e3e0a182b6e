"""Every error the service raises on purpose, as one tree split by who must act.

    SreError
    |- InputRejected        the sender: the body, file, flag or name can never work as it is
    |  |- NotFound          the sender: nothing of ours has the ID or name that was given
    |  `- SettingsRejected  the operator: all mistakes of the settings at once
    |     `- ExtraMissing   the operator: an optional part of the package is not installed
    |- StateConflict        a rival: somebody else wrote first; load again and look
    |- PolicyRefused        a human: the change is not allowed, or the approval does not cover it
    |  `- CredentialsRefused  the operator: our credentials expired, are missing, or are not known there
    |- DependencyFailed     a dependency: store, bus, platform, notifier; another try may help
    `- ModelMisbehaved      the model: its answer is not usable; the rules decide alone

Bugs are not in the tree; they are assertions.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

DISTRIBUTION: Final = "vllm-sre-agent"
"""The name under which the package is installed; docs/adr/0046 says why it is not the command's name."""


def install_command(extras: str) -> str:
    """Return what installs extras beside what is there: from the wheel, because no index has the package yet."""
    wheel = f"FOLDER/{DISTRIBUTION.replace('-', '_')}-*.whl"
    return f'pip install "$(ls {wheel})[{extras}]", FOLDER being that of the wheel'


class SreError(Exception):
    """Says what failed, why, and what to do; cannot be built without all three. Prints ``WHAT: WHY. Hint: HINT``.

    Args:
        what: What failed, in one clause, values with ``!r``, never a secret.
        why: The reason, as far as known.
        hint: What the reader can do now.

    Attributes:
        redeliver: True when another delivery of the same message can help.
        exit_code: What the command line ends with.
    """

    redeliver: ClassVar[bool] = False
    exit_code: ClassVar[int] = 2

    def __init__(self, what: str, *, why: str, hint: str) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.cause}. Hint: {self.hint}"

    @property
    def cause(self) -> str:
        """``WHAT: WHY`` without a full stop, for a text that shows the hint in a place of its own or not at all."""
        return f"{self.what}: {self.why.rstrip('.')}"


class InputRejected(SreError):
    """The input can never work as it is: refuse it, keep it for a person, do not try again."""


class NotFound(InputRejected):
    """Nothing of ours has the ID or name that was given."""


class StoredOtherwise(InputRejected):
    """Something else is stored under this id, where no rival of ours can have written it."""


class SettingsRejected(InputRejected):
    """The settings do not make a service; lists every mistake."""


class ExtraMissing(SettingsRejected):
    """An optional part of the package is wanted and not installed.

    Args:
        what: What could not be done.
        extra: The extra that brings it: a name behind ``[project.optional-dependencies]``.
        package: What of it was not found.
    """

    def __init__(self, what: str, *, extra: str, package: str) -> None:
        super().__init__(
            what,
            why=f"the package {package!r} is not installed",
            hint=f"install the extra: {install_command(extra)}",
        )


class StateConflict(SreError):
    """A rival wrote first; load again and decide anew."""

    redeliver = True


class PolicyRefused(SreError):
    """A person must decide: not allowed, expired, not covered by the approval, or in doubt."""


class CredentialsRefused(PolicyRefused):
    """The other side does not accept our credentials; the same call may be allowed once they are renewed."""


class DependencyFailed(SreError):
    """Something we depend on did not answer or answered wrongly; another delivery may help."""

    redeliver = True
    exit_code = 3


class ModelMisbehaved(SreError):
    """The model's answer is not usable; never repaired, the rules decide alone."""

    exit_code = 3


def nearest(error: BaseException, known: Mapping[type[Exception], type[SreError]]) -> type[SreError]:
    """Return which of our errors stands for one of a library, by the nearest class that a table of them names."""
    return next((known[base] for base in type(error).__mro__ if base in known), DependencyFailed)
