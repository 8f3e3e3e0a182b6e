"""Which python3 the scripts under test find."""

import os
import shutil
import sys
from pathlib import Path


def without_shim(path: str) -> str:
    """Put a Python before a version manager's shim of python3, a shell script that looks for one for half a second.

    It is that below the environment in which the tests run, so that a script finds no package that its user lacks.
    """
    python, found = Path(sys.executable).resolve().with_name("python3"), shutil.which("python3", path=path)
    if found is None or not python.exists() or Path(found).read_bytes()[:2] != b"#!":
        return path
    folders = path.split(os.pathsep)
    folders.insert(folders.index(str(Path(found).parent)), str(python.parent))
    return os.pathsep.join(folders)
