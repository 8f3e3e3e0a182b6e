"""The prompt files are whole, and speak of classes that exist."""

import re

import pytest

from agent.catalogue.load_prompts import FOLDER, load_prompt
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
