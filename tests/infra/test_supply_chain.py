"""The locked packages: each file by its checksum, no registry named, a bill of materials that says the same."""

import json
import re
import subprocess

import pytest

LOCKED = (
    "requirements.txt",
    "requirements-aws-dev.txt",
    "requirements-aws.txt",
    "requirements-kubernetes.txt",
    "requirements-mcp.txt",
    "requirements-azure.txt",
    "requirements-tpu.txt",
    "requirements-notify.txt",
    "requirements-otel.txt",
    "requirements-dev.txt",
    "requirements-audit.txt",
)


def pinned(root, name):
    """Return version and checksums by package."""
    found = {}
    for block in re.split(r"\n(?=[a-z0-9])", (root / name).read_text()):
        if head := re.match(r"([a-z0-9][a-z0-9._-]*)==([^\s;\\]+)", block):
            found[head[1]] = (head[2], re.findall(r"--hash=sha256:[0-9a-f]{64}", block))
    return found


@pytest.mark.parametrize("name", LOCKED)
def test_every_package_is_pinned_by_its_checksums(root, name):
    """`pip install --require-hashes` refuses the file if one has none."""
    rows = pinned(root, name)
    assert len(rows) > 5
    assert [package for package, (_, hashes) in rows.items() if not hashes] == []


@pytest.mark.parametrize("name", LOCKED)
def test_no_registry_is_named(root, name):
    text = (root / name).read_text()
    assert "://" not in text
    assert not re.search(r"^-(?:i|f|-index-url|-extra-index-url|-find-links|-trusted-host)", text, re.MULTILINE)


def test_everything_is_installed_by_its_checksums(root):
    """Make install with what only tests of AWS need, make audit and the site; Google's build reads the file's own hashes.

    Nothing is resolved: a release that came after a lock cannot break an install. pip itself comes out of the lock.
    """
    targets = [".venv/.installed", ".venv-audit/.installed", ".venv-docs/.installed"]
    said = subprocess.run(["make", "-nB", *targets], cwd=root, capture_output=True, text=True, check=True).stdout
    said = said.replace("\\\n", "")
    installs = [each for each in re.split(r"\n|&&", said) if re.search(r"pip install .*-r ", each)]
    assert {name for each in installs for name in re.findall(r"-r (\S+)", each)} == {
        *LOCKED,
        "requirements-docs.txt",
        *(f"{folder}/pip.txt" for folder in (".venv", ".venv-audit", ".venv-docs")),  # out of requirements-dev.txt
    }
    assert all("--require-hashes" in each and "--no-deps" in each for each in installs)


def test_the_bill_of_materials_lists_what_is_locked(root):
    """docs/sbom.cdx.json: CycloneDX, the same packages and versions, those of an extra marked with it."""
    bill = json.loads((root / "docs" / "sbom.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    listed = {each["name"].lower(): each["version"] for each in bill["components"]}
    assert listed == deployed(root)
    assert len({each["bom-ref"] for each in bill["components"]}) == len(listed)
    by_name = {each["name"].lower(): {p["value"] for p in each.get("properties", ())} for each in bill["components"]}
    assert (by_name["kubernetes"], by_name["mcp"], by_name["flask"]) == ({"kubernetes"}, {"mcp"}, set())


def deployed(root):
    """Version by package: of every installation, and of the extras; of one that two extras want, the later one's."""
    files = [name for name in LOCKED if "dev" not in name and "audit" not in name]
    return {name: version for file in files for name, (version, _) in pinned(root, file).items()}


def test_every_deployed_package_names_its_licence(root):
    """docs/licences.md: none is missing, none is unknown."""
    rows = re.findall(
        r"^\| ([a-z0-9._-]+) \| (\S+) \| (.+) \|$", (root / "docs" / "licences.md").read_text(), re.MULTILINE
    )
    listed = {re.sub(r"[._]", "-", name): version for name, version, _ in rows}
    wanted = deployed(root)
    assert {
        name: version for name, version in wanted.items() if listed.get(re.sub(r"[._]", "-", name)) != version
    } == {}
    assert [name for name, _, licence in rows if licence.strip().upper() in {"", "UNKNOWN"}] == []
