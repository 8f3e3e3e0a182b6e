"""Small bundled files, read once: prompts (a new version, never an edit), the default policy, healthy lines."""

from functools import cache
from importlib import resources
from pathlib import Path

from agent.catalogue.catalogue_file import read_table
from agent.core.decision.policy import Policy, parse_policy
from agent.core.diagnosis.prompt import Prompt, parse_prompt
from agent.errors import SettingsRejected

FOLDER = Path(__file__).resolve().parents[2] / "prompts"


def load_prompt(name: str, *, version: int, folder: Path = FOLDER) -> Prompt:
    """Read one prompt.

    Raises:
        SettingsRejected: The file is not there, or is no prompt.
    """
    path = folder / f"{name}.v{version}.md"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsRejected(
            f"prompt {path.name!r} was not read", why=str(error), hint="install the folder prompts/ beside agent/"
        ) from error
    return parse_prompt(text, file=path.name)


FILE = Path(__file__).with_name("healthy.toml")


def load_healthy(path: Path = FILE) -> tuple[str, ...]:
    """Return the lines.

    Raises:
        SettingsRejected: The file holds none, or says not whence and when they were read.
    """
    table = read_table(path)
    lines = table.get("lines")
    if not lines or not all(isinstance(line, str) and line for line in lines) or not table.get("source"):
        raise SettingsRejected(
            f"{path.name} was not read", why="it needs source, date and a list of lines", hint="correct the file"
        )
    return tuple(lines)


@cache
def load_default_policy() -> Policy:
    """Return the policy that holds where nobody wrote one: nothing is automatic, and nobody approves from afar.

    Raises:
        SettingsRejected: A mistake in the bundled file; a bug.
    """
    return parse_policy((resources.files("agent.catalogue") / "policy.default.toml").read_text("utf-8"))
