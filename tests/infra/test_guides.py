"""The guides name what there is, and nothing that is not."""

import re
from pathlib import Path

import pytest

from agent.core.incident.phase import Phase
from agent.settings import VARIABLES
from tests.infra import security_page, terraform_text
from tests.infra import test_deploy as deploying


@pytest.fixture(scope="module")
def cloud(root):
    return terraform_text.read_configuration(root / "infra")


def guide(root, name):
    return (root / "docs" / f"{name}.md").read_text()


def test_the_table_of_rights_is_what_terraform_grants(root, cloud):
    """Whoever widens a right must change the page that tells about it."""
    shown = guide(root, "security").split("<!-- begin generated -->\n")[1].split("<!-- end generated -->")[0]
    assert shown == security_page.tables(cloud)


def test_a_newcomer_finds_every_variable_and_secret_explained(root, cloud):
    """Each variable of Terraform, each setting of deploy.sh and each secret stands on the install page."""
    text = guide(root, "install-gcp")
    script = (root / "deploy.sh").read_text()
    asked = re.findall(r"^  ([A-Z_]{4,})  ", script.split("TEXT")[1], re.MULTILINE)
    assert len(asked) >= 7
    for word in (*cloud.variables, *cloud.locals["secrets"], *asked):
        assert f"`{word}`" in text, word


def test_every_phase_and_own_metric_is_explained(root, cloud):
    """What an operator sees on a screen stands in the guide."""
    text = guide(root, "operate")
    for word in (*Phase, *cloud.locals["counters"], *cloud.locals["durations"]):
        assert re.search(rf"\b{word}\b", text), word
    assert set(re.findall(r"\| `(sre_\w+)` \|", text)) == {*cloud.locals["counters"], *cloud.locals["durations"]}


def test_the_guides_name_only_what_exists(root, cloud):
    """Settings, files and outputs that a guide names are there."""
    for name in ("install-gcp", "operate", "security", "extend"):
        text = guide(root, name)
        for path in re.findall(r"`((?:agent|infra|tests|docs|functions|tools)/[\w./-]+)`", text):
            assert (root / path).exists() or "NAME" in path, f"{name}: {path}"
    for output in re.findall(r"output `(\w+)`", guide(root, "install-gcp")):
        assert output in cloud.outputs, output
    named = set(re.findall(r'"([A-Z][A-Z_]{4,})":', guide(root, "install-gcp") + guide(root, "operate")))
    assert named <= set(VARIABLES)


def test_the_commands_of_the_guides_are_understood_by_gcloud(root, missing):
    """The same parser that reads deploy.sh's commands."""
    if deploying.shutil.which("gcloud") is None:
        missing("the gcloud command")
    found = []
    for name in ("install-gcp", "operate"):
        for block in re.findall(r"```\n(.*?)```", guide(root, name), re.DOTALL):
            found += [line.split("  #")[0].strip() for line in block.splitlines() if line.startswith("gcloud ")]
    assert len(found) >= 6
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        verdicts = deploying.lint(Path(folder), found)
    assert [v["command_string"] for v in verdicts if not v["success"]] == []
