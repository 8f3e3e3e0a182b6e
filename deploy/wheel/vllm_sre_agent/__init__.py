"""The installed form of the agent: a folder of its own, so that the name ``agent`` collides with nobody's package."""

import sys
from pathlib import Path
from typing import Final

APPLICATION: Final = Path(__file__).parent / "_application"
"""Where a wheel keeps agent/, prompts/ and examples/; absent in a checkout, where agent/ is found as it stands."""


def main() -> int:
    """Run the command line ``sre-agent``.

    The application's folder comes first on this process's path, so that a package of somebody else's that is
    called ``agent`` too is not taken for ours. Nothing outside this process is touched.

    Returns:
        The exit code.
    """
    if sys.version_info < (3, 11):  # noqa: UP036 - pip refuses; a folder on the path does not
        found = ".".join(str(part) for part in sys.version_info[:3])
        print(f"sre-agent does not run: this is Python {found}. Hint: use Python 3.11 or newer", file=sys.stderr)
        return 2
    if APPLICATION.is_dir():
        sys.path.insert(0, str(APPLICATION))
    from agent.entrypoints.cli.main import main as run  # noqa: PLC0415 - only now is it found

    return run()
