"""Quantities of CPU and memory as Kubernetes writes them, and as Cloud Run and Container Apps took over from it."""

import re
from typing import Any, Final

from agent.errors import InputRejected

_QUANTITY: Final = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE]\d+)?)(m|k|Ki|M|Mi|G|Gi|T|Ti)?")
_UNITS: Final = {None: 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
                 "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}  # fmt: skip


def quantity(text: Any) -> float:
    """Return a resource quantity as a number: cores, bytes or a count.

    Raises:
        InputRejected: It is none.
    """
    found = _QUANTITY.fullmatch(str(text))
    if found is None:
        raise InputRejected(
            "a resource quantity was not read",
            why=f"{text!r} is none",
            hint="set CPU and memory of the server's container to quantities, such as 4 and 16Gi",
        )
    return float(found[1]) * _UNITS[found[2]]


def mib(text: Any) -> int:
    """Return a quantity of bytes in MiB."""
    return int(quantity(text) // 2**20)


def mebibytes(memory_mib: int | None) -> str | None:
    """Return memory as a quantity, as an API server would write it."""
    if memory_mib is None:
        return None
    whole, rest = divmod(memory_mib, 1024)
    return f"{memory_mib}Mi" if rest else f"{whole}Gi"


def cores(cpu: float | None) -> str | None:
    """Return CPUs as a quantity, as an API server would write it."""
    if cpu is None:
        return None
    return f"{cpu:g}" if cpu == int(cpu) else f"{round(cpu * 1000)}m"
