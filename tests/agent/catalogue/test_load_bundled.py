"""The bundled files are whole, and speak of classes that exist; a wrong one is refused with every mistake."""

import re

import pytest

from agent.catalogue.load_bundled import FOLDER, FOLLOW_UPS, load_follow_ups, load_healthy, load_prompt
from agent.errors import SettingsRejected
from agent.failures.signature import FailureClass


def test_every_prompt_file_is_read():
    """Name and version of the file are those of its front matter."""
    files = sorted(FOLDER.glob("*.md"))
    assert files
    for path in files:
        name, version, _ = path.name.split(".")
        assert load_prompt(name, version=int(version[1:])).name == name


def test_the_classes_that_the_prompt_tells_apart_exist():
    """A renamed class cannot stay in the prompt."""
    words = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", load_prompt("diagnose", version=1).system))
    assert "gpu_oom_weights" in words
    assert words - {"root_cause"} <= {str(class_) for class_ in FailureClass}


def test_a_missing_prompt_is_told():
    """With the way to mend it."""
    with pytest.raises(SettingsRejected, match="install the folder prompts"):
        load_prompt("diagnose", version=99)


def test_there_are_lines_of_a_start_and_of_serving():
    """Both halves of a healthy life are there."""
    lines = load_healthy()
    assert any("Application startup complete" in line for line in lines)
    assert any("Avg generation throughput" in line for line in lines)


def test_a_file_without_lines_or_source_is_refused(tmp_path):
    """An empty list would let every text be named."""
    for text in ("lines = []\nsource = 'x'", "lines = ['a']"):
        path = tmp_path / "healthy.toml"
        path.write_text(text)
        with pytest.raises(SettingsRejected):
            load_healthy(path)


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
    rest = FOLLOW_UPS.read_text(encoding="utf-8").partition("[benign]")[0]
    file = tmp_path / "follow_ups.toml"
    file.write_text(rest + wrong, encoding="utf-8")
    with pytest.raises(SettingsRejected, match=why.replace("(", r"\(")):
        load_follow_ups(file)
