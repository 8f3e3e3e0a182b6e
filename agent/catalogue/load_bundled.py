"""Small bundled files, read once: prompts (a new version, never an edit), default policy, healthy lines, follow-ups."""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from agent.catalogue.catalogue_file import Mistakes, read_table
from agent.core.decision.policy import Policy, parse_policy
from agent.core.diagnosis.prompt import Prompt, parse_prompt
from agent.errors import SettingsRejected
from agent.failures.follow_up import FollowUp, FollowUpKind
from agent.failures.signature import FailureClass

FOLDER = Path(__file__).resolve().parents[2] / "prompts"


def load_prompt(name: str, *, version: int) -> Prompt:
    """Read one prompt.

    Raises:
        SettingsRejected: The file is not there, or is no prompt.
    """
    path = FOLDER / f"{name}.v{version}.md"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsRejected(
            f"prompt {path.name!r} was not read", why=str(error), hint="install the folder prompts/ beside agent/"
        ) from error
    return parse_prompt(text, file=path.name)


HEALTHY: Final = Path(__file__).with_name("healthy.toml")


def load_healthy(path: Path = HEALTHY) -> tuple[str, ...]:
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


FOLLOW_UPS: Final = Path(__file__).with_name("follow_ups.toml")
_KINDS: Final = (FollowUpKind.PREVENT, FollowUpKind.DETECT)


@cache
def load_follow_ups(path: Path = FOLLOW_UPS) -> Mapping[str, tuple[FollowUp, ...]]:
    """Return the actions by failure class.

    Raises:
        SettingsRejected: A class is missing or unknown, or an entry is no list of texts; the reason lists all.
    """
    table, mistakes = read_table(path), Mistakes(path.name)
    wanted = {str(class_) for class_ in FailureClass if class_ is not FailureClass.UNKNOWN}
    mistakes.found += [f"{name} is missing" for name in sorted(wanted - set(table))]
    mistakes.found += [f"{name} is no class" for name in sorted(set(table) - wanted)]
    mistakes.found += [f"{name}: {why}" for name, entry in table.items() if (why := _mistake(entry))]
    mistakes.refuse()
    return {
        name: tuple(FollowUp(kind=kind, text=text) for kind in _KINDS for text in entry.get(kind, ()))
        for name, entry in table.items()
    }


def _mistake(entry: Any) -> str:
    """Say what is wrong with the entry of a class, or nothing."""
    if not isinstance(entry, dict) or not entry:
        return "no action"
    strange = sorted(set(entry) - set(_KINDS))
    if strange:
        return f"{strange[0]!r} is no kind of action"
    texts = [text for value in entry.values() for text in (value if isinstance(value, list) else [None])]
    return "" if texts and all(isinstance(text, str) and text.strip() for text in texts) else "an action is no text"
