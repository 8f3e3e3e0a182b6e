"""Actions after an incident: every class has one, and a wrong file is refused with every mistake."""

import pytest

from agent.catalogue.load_follow_ups import FILE, load_follow_ups
from agent.errors import SettingsRejected
from agent.failures.signature import FailureClass


def test_every_class_but_the_unknown_one_has_an_action():
    found = load_follow_ups()
    assert set(found) == {str(class_) for class_ in FailureClass} - {"unknown"}
    assert all(items and all(item.text.endswith(".") for item in items) for items in found.values())


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("[no_such_class]\nprevent = ['x']", "no_such_class is no class"),
        ("[benign]\ncure = ['x']", "benign: 'cure' is no kind of action"),
        ("[benign]\ndetect = 'x'", "benign: an action is no text"),
        ("[benign]\ndetect = ['']", "benign: an action is no text"),
        ("[benign]\n", "benign: no action"),
        ("", "benign is missing"),
        ("[benign", "Expected"),
    ],
    ids=["class", "kind", "no list", "empty text", "nothing", "missing", "no TOML"],
)
def test_a_wrong_file_is_refused_and_says_why(tmp_path, wrong, why):
    rest = FILE.read_text(encoding="utf-8").partition("[benign]")[0]
    file = tmp_path / "follow_ups.toml"
    file.write_text(rest + wrong, encoding="utf-8")
    with pytest.raises(SettingsRejected, match=why.replace("(", r"\(")):
        load_follow_ups(file)
