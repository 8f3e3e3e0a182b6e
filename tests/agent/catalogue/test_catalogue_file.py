"""A bundled file is read whole, and refused with every mistake at once."""

import pytest
from pydantic import Field

from agent.catalogue.catalogue_file import Mistakes, read_table
from agent.core.value import Value
from agent.errors import SettingsRejected


class Entry(Value):
    """What a file of these tests holds."""

    name: str
    count: int = Field(ge=1)


@pytest.mark.parametrize(("name", "text"), [("a.toml", "count = 2"), ("a.json", '{"count": 2}')], ids=["TOML", "JSON"])
def test_a_table_is_read_by_its_suffix(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert read_table(tmp_path / name) == {"count": 2}


@pytest.mark.parametrize("text", ["not [toml", "\0", None], ids=["no TOML", "no text", "not there"])
def test_what_cannot_be_read_is_refused_by_name(tmp_path, text):
    if text is not None:
        (tmp_path / "a.toml").write_text(text)
    with pytest.raises(SettingsRejected, match=r"'a\.toml' was not read"):
        read_table(tmp_path / "a.toml")


def test_every_mistake_of_every_entry_is_told_at_once():
    """Of the shape and of what our own rules say, each with its entry and its key."""
    mistakes = Mistakes("a.toml")
    with mistakes.of("first"):
        Entry.model_validate({"count": 0, "colour": "red"})
    with mistakes.of("second"):
        raise ValueError("it stands twice")
    with mistakes.of("third"):
        Entry.model_validate({"name": "x", "count": 1})
    with pytest.raises(SettingsRejected) as refused:
        mistakes.refuse()
    assert refused.value.what == "catalogue 'a.toml' was refused"
    for said in ("4 mistakes", "first: name is missing", "first: count is 0", "first: unknown key 'colour'", "second:"):
        assert said in refused.value.why
    assert "third" not in refused.value.why


def test_a_catalogue_without_mistakes_is_taken():
    Mistakes("a.toml").refuse()


def test_what_is_no_mistake_of_an_entry_goes_on():
    """A bug of ours is not a reason to correct a file."""
    with pytest.raises(ZeroDivisionError), Mistakes("a.toml").of("first"):
        raise ZeroDivisionError
