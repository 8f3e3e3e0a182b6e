"""Terraform's text as values: what stands in the files, without providers and without evaluation."""

from dataclasses import dataclass, field
from functools import cache

import hcl2


@dataclass
class Configuration:
    """One folder of .tf files; expressions stay text in ``${...}``."""

    locals: dict = field(default_factory=dict)
    resources: dict = field(default_factory=dict)
    modules: dict = field(default_factory=dict)
    variables: dict = field(default_factory=dict)
    outputs: dict = field(default_factory=dict)

    def of(self, kind):
        """Return resources of one type by name."""
        return {name: body for (type_, name), body in self.resources.items() if type_ == kind}


def read_configuration(folder):
    """Parse the .tf files of a folder, not of its subfolders."""
    found = Configuration()
    for path in sorted(folder.glob("*.tf")):
        document = parsed(path.read_text())
        for block in document.get("locals", []):
            twice = found.locals.keys() & block.keys()
            assert not twice, f"{path.name}: locals {twice} stand twice"
            found.locals |= block
        for block in document.get("resource", []):
            for kind, named in block.items():
                for name, body in named.items():
                    assert (kind, name) not in found.resources, f"{path.name}: {kind}.{name} stands twice"
                    found.resources[kind, name] = body
        for key, kept in (("module", found.modules), ("variable", found.variables), ("output", found.outputs)):
            for block in document.get(key, []):
                kept.update(block)
    return found


@cache
def parsed(text):
    """Parse one file; mutated copies of the tree share what was not touched."""
    return plain(hcl2.loads(text))


def plain(value):
    """Take the parser's quotes and marks out."""
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items() if key not in {"__is_block__", "__comments__"}}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str) and len(value) >= 2 and value[0] == value[-1] == '"':
        return value[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return value
