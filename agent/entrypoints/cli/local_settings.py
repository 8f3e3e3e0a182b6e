"""What works on the files of one machine refuses the settings of the cloud, in words, before anything is made."""

from agent.errors import InputRejected
from agent.settings import Settings


def require_local_settings(settings: Settings, *, what: str, hint: str) -> None:
    """Refuse settings that lead elsewhere: an empty folder here would be taken for what stands there.

    Args:
        settings: As they were read.
        what: What does not happen, for the error.
        hint: What to do instead.

    Raises:
        InputRejected: STORE or BUS name the cloud.
    """
    words = [("STORE", settings.store)] if not settings.embedded else []
    words += [("BUS", settings.bus)] if settings.bus != "embedded" else []
    if words:
        why = " and ".join(f"{name} is {value!r}" for name, value in words)
        raise InputRejected(what, why=f"{why}, in the cloud", hint=hint)
