"""What runs on this operating system: all of it on Linux, all but servers of this machine on macOS, less on Windows."""

import getpass
import os
import platform
from typing import Final

from agent.errors import InputRejected

_NAMES: Final = {"Darwin": "macOS"}
_ANYWHERE: Final = "classify, fit, advise, cost and replay work here"


def require_linux(what: str) -> None:
    """Refuse what needs Linux itself: process handles, /proc and the ends of processes that are not our children.

    Args:
        what: What was not done, as an error begins.

    Raises:
        InputRejected: This is another system.
    """
    if (system := platform.system()) != "Linux":
        raise InputRejected(
            what,
            why=f"a server of this machine is supervised on Linux only, and this is {_NAMES.get(system, system)}",
            hint=f"run the agent beside the server, on Linux or in its container; {_ANYWHERE}",
        )


def require_unix(what: str) -> None:
    """Refuse what needs file locks, process groups and signals as Linux and macOS have them.

    Args:
        what: What was not done, as an error begins.

    Raises:
        InputRejected: This is Windows.
    """
    if platform.system() == "Windows":
        raise InputRejected(
            what,
            why="it needs file locks and process groups of Linux or macOS, and this is Windows",
            hint=f"run it in WSL 2 or in a container; {_ANYWHERE}",
        )


def user_name() -> str:
    """Return who runs this process, as this machine names them; a container's user may have a number alone.

    Raises:
        InputRejected: Windows, with no USERNAME set.
    """
    try:
        return getpass.getuser()
    except (KeyError, ImportError, OSError) as error:  # since Python 3.13 only the last
        if hasattr(os, "getuid"):
            return f"uid-{os.getuid()}"
        raise InputRejected(
            "nothing was done", why="nobody knows who runs this command", hint="set USERNAME, or give --by NAME"
        ) from error
