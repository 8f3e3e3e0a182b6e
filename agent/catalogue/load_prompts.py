"""The prompt files, read once; a prompt that was used is never edited, it gets a new version."""

from pathlib import Path

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
