"""Runs on the instance, in front of the script: the files that make a systemd unit, read as systemd reads them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]

DROP_IN = "zz-sre-agent.conf"  # drop-ins are read in the order of their names


class Files:
    """The files that make the unit what it is, as they lie on the disk now."""

    host = "127.0.0.1"
    port: int | None = None  # read from its words

    def __init__(self, said: Json, asked: Json) -> None:
        self.ours = Path(asked["folder"]) / f"{asked['unit']}.d" / DROP_IN
        drop_ins = [Path(p) for p in said.get("DropInPaths", "").split() if p != str(self.ours)]
        self.units = [Path(said["FragmentPath"]), *drop_ins]
        self.later = [p.name for p in drop_ins if p.name > DROP_IN]
        self.hidden = tuple(asked["hidden"])
        self.text: str | None = self.ours.read_text() if self.ours.exists() else None
        texts = [p.read_text(errors="replace") for p in self.units if p.exists()]
        self.words: list[str] = []
        self.refs: list[str] = []
        self.unread = ""
        self.env: dict[str, str] = {}
        self.env_files: list[tuple[str, str]] = []
        self._parse([*texts, self.text or ""])

    @property
    def others(self) -> str:
        """Digest of everything that is not ours."""
        held = [(str(p), p.read_bytes().hex() if p.exists() else "") for p in self.units]
        own = str(self.ours.parent)
        held += [row for row in self.env_files if not row[0].startswith(own)]
        return sha(json.dumps(held))

    def _parse(self, texts: list[str]) -> None:
        starts: list[str] = []
        given: list[str] = []
        files: list[str] = []
        removed: list[str] = []
        kept = {"ExecStart": starts, "Environment": given, "EnvironmentFile": files, "UnsetEnvironment": removed}
        for text in texts:
            for key, value in service_settings(text):
                if key in kept:
                    kept[key][:] = [*kept[key], value] if value else []
        for line in given:
            self.env.update(assignments(split_words(line)))
        for name in files:
            path = Path(name.lstrip("-"))
            text = path.read_text(errors="replace") if path.exists() else ""
            self.env_files.append((str(path), sha(text)))
            self.env.update(
                assignments(line.strip() for line in joined(text) if line.strip()[:1] not in {"#", ";", ""})
            )
        for name in (n for line in removed for n in split_words(line)):
            self.env.pop(name, None)
        self._read_words(starts)

    def _read_words(self, starts: list[str]) -> None:
        if len(starts) != 1:
            self.unread = f"the unit has {len(starts)} ExecStart commands, and one is needed"
            return
        line = starts[0].replace("%%", "\0")
        if re.search(r"%\S", line):
            self.unread = "its ExecStart has specifiers of systemd (%)"
        if line[:1] in "@:|+!":
            self.unread = f"its ExecStart begins with {line[0]!r}"
        raw = [word.replace("\0", "%") for word in split_words(line.lstrip("-"))]
        if not raw:
            self.unread = "its ExecStart is empty"
        for word in raw:
            self._take(word)

    def _take(self, word: str) -> None:
        """Fill variables in as systemd does; a secret one stays a reference."""
        alone = re.fullmatch(r"\$([A-Za-z_]\w*)", word)
        given = re.match(r"(?:--env=|-e)?([A-Za-z_]\w*)=[^$]", word)
        if given and is_hidden(given[1], self.hidden):
            self.unread, word = f"it holds the value of {given[1]}: use EnvironmentFile", f"{given[1]}="
        names = [alone[1]] if alone else re.findall(r"(?<!\$)\$\{([A-Za-z_]\w*)\}", word)
        if any(is_hidden(name, self.hidden) for name in names):
            self.words.append(word)
            self.refs.append(word)
        elif alone:
            self.words += split_words(self.env.get(alone[1], ""))
        else:
            self.words.append(
                re.sub(r"\$\$|\$\{([A-Za-z_]\w*)\}", lambda m: self.env.get(m[1], "") if m[1] else "$", word)
            )

    @property
    def shown_env(self) -> list[list[str | None]]:
        """Variables by name; the values of secrets stay here."""
        return [[n, None if is_hidden(n, self.hidden) else v] for n, v in self.env.items()]

    def secret(self, name: str) -> str:
        """Return a value for use on this machine alone."""
        return self.env.get(name, "")


def is_hidden(name: str, hidden: tuple[str, ...]) -> bool:
    """Whether a variable's name says that it holds a secret."""
    return any(part in name.upper() for part in hidden)


def joined(text: str) -> Iterator[str]:
    """Yield lines with those that end in a backslash joined."""
    held = ""
    for line in text.splitlines():
        if line.endswith("\\") and line.lstrip()[:1] not in {"#", ";"}:
            held += line[:-1] + " "
            continue
        yield held + line
        held = ""
    if held:
        yield held


def service_settings(text: str) -> Iterator[tuple[str, str]]:
    """Yield key and value of the section [Service]."""
    section = ""
    for line in map(str.strip, joined(text)):
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line and line[:1] not in {"#", ";"}:
            key, _, value = line.partition("=")
            yield key.strip(), value.strip()


def split_words(line: str) -> list[str]:
    """Split a line into words as systemd does: quotes of both kinds, escapes with a backslash."""
    words: list[str] = []
    for found in re.finditer(r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\\.|[^\s"'\\])+""", line):
        parts = re.findall(r""""((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|((?:\\.|[^"'\\])+)""", found[0])
        words.append("".join(re.sub(r"\\(.)", unescaped, a or b or c) for a, b, c in parts))
    return words


def unescaped(found: Any) -> str:
    """Return the character that an escape stands for."""
    return {"n": "\n", "t": "\t", "r": "\r", "s": " "}.get(found[1], str(found[1]))


def assignments(words: Any) -> Iterator[tuple[str, str]]:
    """Yield name and value of words such as NAME=VALUE; of a file a value may be quoted."""
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            bare = value.strip()
            quoted = len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'"
            yield name.strip(), bare[1:-1] if quoted else bare


def sha(text: str) -> str:
    """Return a digest of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
