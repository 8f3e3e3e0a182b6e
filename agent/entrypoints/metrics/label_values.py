"""Values of labels: of a closed list, or the name of a watched service; whatever else a record says is `other`."""

from collections.abc import Collection
from typing import Final

from agent.failures.signature import FailureClass

OTHER: Final = "other"
_CLASSES: Final = frozenset(FailureClass)


def class_label(class_: str) -> str:
    """Return a failure class as a label; a stored word that is none is `other`."""
    return class_ if class_ in _CLASSES else OTHER


def service_label(service: str, watched: Collection[str]) -> str:
    """Return a service as a label; a name that is watched no more, or never was, is `other`."""
    return service if service in watched else OTHER
