"""People as tests name them: in the fields of what they say."""

from typing import Any

from agent.core.decision.decision import Person


def said_by(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a word, with who says it in ``by``."""
    names = ("who", "channel", "verified")
    word = {name: value for name, value in fields.items() if name not in names}
    return word | {"by": Person(**{name: fields[name] for name in names})}
