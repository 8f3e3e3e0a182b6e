"""What to do after an incident, by failure class: read once, every class has at least one action."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from agent.catalogue.catalogue_file import Mistakes, read_table
from agent.failures.follow_up import FollowUp, FollowUpKind
from agent.failures.signature import FailureClass

FILE: Final = Path(__file__).with_name("follow_ups.toml")
_KINDS: Final = (FollowUpKind.PREVENT, FollowUpKind.DETECT)


@cache
def load_follow_ups(path: Path = FILE) -> Mapping[str, tuple[FollowUp, ...]]:
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
