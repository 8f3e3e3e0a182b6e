"""JSON Schema of our models as it is published: each attribute with the sentence that its docstring has for it."""

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

Use = Literal["taken", "given"]
"""Whether it comes in, where an unknown field is refused, or goes out, where a reader should ignore one."""

_ATTRIBUTE = re.compile(r"^    (\w+): ?(.*(?:\n {8,}.*)*)", re.MULTILINE)


def definitions(
    forms: Iterable[type[BaseModel]], use: Use, *, place: str, mode: JsonSchemaMode = "validation"
) -> dict[str, dict[str, Any]]:
    """Return the definitions of models and of all that they hold, by name.

    Args:
        forms: The models.
        use: Whether they come in or go out.
        place: Where the definitions will stand, such as ``#/$defs/``.
        mode: ``serialization`` where every field is always sent.
    """
    wanted = list(dict.fromkeys(forms))
    _, made = models_json_schema([(form, mode) for form in wanted], ref_template=f"{place}{{model}}")
    return {name: _published(schema, use) for name, schema in sorted(made.get("$defs", {}).items())}


def written(document: dict[str, Any]) -> str:
    """Return a document as it is kept."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def keep_or_check(path: Path, text: str, command: str, arguments: list[str]) -> int:
    """Write a page, or with ``--check`` only say whether it is current.

    Returns:
        The exit code: 1 where it is not current.
    """
    if "--check" not in arguments:
        path.write_text(text, encoding="utf-8")
        return 0
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return 0
    print(f"{path.name} is not current: run {command}", file=sys.stderr)
    return 1


def _published(schema: dict[str, Any], use: Use) -> dict[str, Any]:
    """Move the sentences of a docstring to the attributes that they are about."""
    said, _, attributes = schema.get("description", "").partition("\n\nAttributes:\n")
    if said:
        schema["description"] = _plain(said)
    for name, words in _ATTRIBUTE.findall(attributes):
        if name in schema.get("properties", {}):
            schema["properties"][name].setdefault("description", _plain(words))
    cleaned: dict[str, Any] = _without_noise(schema, use)
    return cleaned


def _without_noise(schema: Any, use: Use) -> Any:
    """Leave out titles, which repeat the names, and of what goes out the defaults and the closed door."""
    if isinstance(schema, list):
        return [_without_noise(each, use) for each in schema]
    if not isinstance(schema, dict):
        return schema
    dropped = {"title"} if use == "taken" else {"title", "default"}
    kept = {
        name: {field: _without_noise(form, use) for field, form in value.items()}
        if name in {"properties", "$defs"}
        else _without_noise(value, use)
        for name, value in schema.items()
        if not (name in dropped and not isinstance(value, dict))
    }
    if use == "given" and kept.get("additionalProperties") is False:
        del kept["additionalProperties"]
    return kept


def _plain(text: str) -> str:
    return " ".join(text.replace("``", "`").split())
