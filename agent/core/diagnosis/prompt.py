"""A prompt is a versioned text with blanks; outside text only ever fills a fenced blank."""

from collections.abc import Mapping
from string import Template

from agent.core.value import Value, digest
from agent.errors import SettingsRejected

_USER = "\n--- user ---\n"
_HEAD = ("name", "version", "input", "output", "why")


class Prompt(Value):
    """One prompt file.

    Attributes:
        system: The part that is ours alone.
        user: The part with the outside text.
        digest: SHA-256 of the whole file, hex.
    """

    name: str
    version: int
    system: str
    user: str
    digest: str

    @property
    def label(self) -> str:
        """Name, version and digest as every diagnosis carries them."""
        return f"{self.name}.v{self.version} {self.digest[:12]}"

    def fill(self, **blanks: str) -> tuple[str, str]:
        """Return the system and the user part with every blank filled; what fills a blank is never read again.

        Raises:
            KeyError: A blank has no filling; a bug.
        """
        return Template(self.system).substitute(blanks), Template(self.user).substitute(blanks)


def parse_prompt(text: str, *, file: str) -> Prompt:
    """Read a prompt file: front matter, system part, user part.

    Raises:
        SettingsRejected: The front matter is not whole, or does not belong to the file's name.
    """
    head, body = _split(text, file)
    missing = [word for word in _HEAD if not head.get(word)]
    named = f"{head.get('name')}.v{head.get('version')}.md"
    if missing or named != file or _USER not in body:
        why = f"the front matter lacks {missing}" if missing else f"it calls itself {named!r} or has no user part"
        raise SettingsRejected(f"prompt {file!r} was not read", why=why, hint="see prompts/diagnose.v1.md")
    system, user = body.split(_USER, 1)
    prompt = Prompt(
        name=head["name"], version=int(head["version"]), system=system.strip(), user=user.strip(), digest=digest(text)
    )
    blanks = {*Template(prompt.system).get_identifiers(), *Template(prompt.user).get_identifiers()} - {"fence"}
    wanted = {part.strip() for part in head["input"].split(",")}
    if blanks != wanted:
        raise SettingsRejected(
            f"prompt {file!r} was not read",
            why=f"its blanks are {sorted(blanks)}, its front matter says {sorted(wanted)}",
            hint="name every blank in 'input'",
        )
    return prompt


def _split(text: str, file: str) -> tuple[Mapping[str, str], str]:
    parts = text.split("---\n", 2)
    if len(parts) != 3 or parts[0].strip():
        raise SettingsRejected(
            f"prompt {file!r} was not read", why="it does not begin with front matter", hint="begin it with ---"
        )
    rows = (line.partition(":") for line in parts[1].splitlines() if line.strip())
    return {name.strip(): value.strip() for name, _, value in rows}, parts[2]
