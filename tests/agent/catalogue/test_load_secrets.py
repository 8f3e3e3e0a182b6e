"""The rules of redaction are read whole or not at all."""

import copy
import tomllib

import pytest

from agent.catalogue.load_secrets import SECRETS_FILE, load_secrets, parse_secrets
from agent.errors import InputRejected

RAW = tomllib.loads(SECRETS_FILE.read_text(encoding="utf-8"))


def test_at_least_sixty_kinds_each_with_a_source():
    rules = load_secrets()
    assert len({form.kind for form in rules.formats}) >= 60
    assert all(each.source.startswith("https://") for each in (*rules.formats, *rules.services))


def test_all_mistakes_are_told_at_once():
    raw = copy.deepcopy(RAW)
    raw["format"][0]["pattern"] = "([x"
    raw["format"][1]["date"] = "yesterday"
    raw["format"][2]["keywords"] = ["UPPER"]
    raw["services"]["known"].append(raw["services"]["known"][0])
    with pytest.raises(InputRejected) as caught:
        parse_secrets(raw)
    why = caught.value.why
    assert why.startswith("4 mistakes: ")
    assert all(word in why for word in ("yesterday", "'UPPER'", "adafruit", "no RE2 pattern"))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda raw: raw["format"][0].pop("source"), "format.0.source"),
        (lambda raw: raw["format"][0].update(surprise=1), "surprise"),
        (lambda raw: raw["format"][0].update(kind="Not A Kind"), "format.0.kind"),
        (lambda raw: raw["format"][0].update(source="hearsay"), "format.0.source"),
        (lambda raw: raw["services"]["known"][0].update(least=3), "least"),
        (lambda raw: raw["names"].update(weak=[]), "names.weak"),
    ],
)
def test_entry_out_of_shape_is_refused(change, word):
    raw = copy.deepcopy(RAW)
    change(raw)
    with pytest.raises(InputRejected, match=word):
        parse_secrets(raw)


@pytest.mark.parametrize("body", ["not = [toml", "\0"])
def test_file_that_is_no_toml_is_refused(tmp_path, body):
    path = tmp_path / "secrets.toml"
    path.write_text(body)
    with pytest.raises(InputRejected, match=r"secrets\.toml"):
        load_secrets(path)


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(InputRejected):
        load_secrets(tmp_path / "none.toml")


def test_no_secret_stands_in_the_rules_themselves():
    """Patterns and pages of makers are not taken for what they describe."""
    from agent.core.redaction import Redactor

    sources = [form.source for form in load_secrets().formats]
    assert Redactor(load_secrets()).redact_lines(sources).lines == tuple(sources)
