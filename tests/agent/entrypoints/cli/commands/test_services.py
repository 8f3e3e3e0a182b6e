"""Services on the command line: what is listed, shown, and said to differ."""

import json
import sys
from pathlib import Path

import pytest

from agent.app import build_app
from agent.core.plan.action import Lifecycle, LifecycleOperation, SetFlag
from agent.entrypoints.cli.main import main
from agent.ports.platform import Order
from agent.ports.stage_context import Owner
from agent.settings import read_settings
from agent.stages.observe_services import observe_services
from tests.leases import HELD

SERVICE = "gemma4-26b-qat-l4"
KEYS = {
    "name", "platform", "condition", "why", "revision", "url", "model", "accelerator", "image", "unpinned", "flags",
    "min_instances", "max_instances", "needs", "usd_per_h", "drift", "make_as_declared", "changes", "incidents",
}  # fmt: skip


def said(capsys, *words):
    code = main(["services", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def change(app, *actions, key):
    """Somebody with the platform's own rights changes the service; as a revision of its own."""
    platform = app.environment.platform_of(SERVICE)
    return platform.apply(
        Order(
            service=SERVICE,
            incident="inc-1",
            effect_key=key,
            revision=f"{SERVICE}-{key}",
            etag=platform.describe(SERVICE).etag,
            actions=actions,
            lease_end=HELD,
        )
    )


@pytest.fixture
def declared(asked, tmp_path, monkeypatch):
    """The services file of the example with what its owner declares."""
    example = Path(read_settings().platform.removeprefix("rehearsal:"))
    text = (example / "services.toml").read_text()
    path = tmp_path / "services.toml"

    def declare(block: str) -> None:
        path.write_text(f"{text}\n[service.declared]\n{block}\n")
        monkeypatch.setenv("SERVICES", str(path))

    return declare


def test_the_list_has_one_row_for_each_service(asked, capsys):
    code, out, err = said(capsys, "--json")
    (row,) = map(json.loads, out.splitlines())
    assert (code, err) == (0, "")
    assert set(row) == KEYS
    assert (row["name"], row["condition"], row["needs"]["context"]) == (SERVICE, "not ready", 16384)
    assert row["flags"]["max-model-len"] == "16384"
    assert "m" not in row["flags"]
    assert [(i["id"], i["phase"]) for i in row["incidents"]] == [(asked.id, "ASKED")]
    heading, line = said(capsys)[1].splitlines()
    assert heading.split() == ["SERVICE", "CONDITION", "REVISION", "USD/H", "DRIFT", "INCIDENTS"]
    assert line.startswith(f"{SERVICE}  not ready")
    assert line.endswith("1 open incident")


def test_one_is_shown_with_why_it_is_not_ready(asked, capsys):
    code, out, _ = said(capsys, "show", SERVICE)
    assert code == 0
    assert "startup probe checks" in out
    assert "the tag :nightly moves" in out
    assert asked.id in out


EXAMPLES = Path(__file__).resolve().parents[5] / "examples"
WITHOUT = {
    "aws": ("boto3", "ec2", "gemma4-12b-ec2-l4-queue"),
    "tpu": ("google.cloud.tpu_v2", "tpu_vm:example-project", "gemma4-e2b-tpu-v6e-hbm"),
}


@pytest.mark.parametrize("extra", WITHOUT)
def test_the_list_says_which_extra_is_missing(extra, monkeypatch, tmp_path, capsys):
    """A condition that is unknown without a reason would send its reader to the platform."""
    package, platform, example = WITHOUT[extra]
    monkeypatch.setitem(sys.modules, package, None)
    parent, _, name = package.rpartition(".")
    if parent in sys.modules:  # a test before this one may have imported it
        monkeypatch.delattr(sys.modules[parent], name, raising=False)
    services = EXAMPLES / example / "services.toml"
    for name, value in (("PLATFORM", platform), ("STORE", f"sqlite:{tmp_path}"), ("SERVICES", str(services))):
        monkeypatch.setenv(name, value)
    code, out, err = said(capsys)
    assert (code, out.splitlines()[1].split()[1]) == (0, "unknown")
    (line,) = err.splitlines()
    assert f'Hint: install the extra: pip install "$(ls FOLDER/vllm_sre_agent-*.whl)[{extra}]"' in line


def test_without_a_declaration_or_an_approved_change_there_is_no_drift(asked, capsys):
    code, out, _ = said(capsys, "drift")
    assert (code, out.splitlines()[0]) == (0, f"{SERVICE}: nothing was declared, and no approved change was made")


def test_what_differs_from_the_declaration_ends_with_1_and_names_the_way_back(declared, capsys):
    declared("max_instances = 1\nmin_instances = 0")
    assert said(capsys, "drift", SERVICE)[0] == 0
    declared("max_instances = 3\nimage = 'vllm/vllm-openai:v0.32.0'")
    code, out, _ = said(capsys, "drift", SERVICE)
    assert code == 1
    assert "the most instances is 1, declared is 3" in out
    assert f"sre-agent change {SERVICE} --scale 0:3 --why 'as declared'" in out
    assert "by hand: image to vllm/vllm-openai:v0.32.0" in out
    row = json.loads(said(capsys, "drift", "--json")[1])
    assert {r["setting"] for r in row["drift"]} == {"max_instances", "image"}


def test_a_change_after_the_approved_one_is_drift_and_told_with_its_author(asked, capsys):
    """The tick keeps what it saw; reading it changes nothing."""
    app = build_app(read_settings())
    context = app.contexts[Owner.TICK]
    change(app, SetFlag(name="max-num-seqs", value="4"), key="k1aaaaaaa")
    assert observe_services(context) == (SERVICE,)
    assert observe_services(context) == ()
    assert said(capsys, "drift")[0] == 0
    record = app.service_records.service_record(SERVICE)
    app.service_records.keep_service_record(record.with_(approved={**record.approved, "flag --max-num-seqs": "8"}))
    code, out, _ = said(capsys, "drift")
    assert code == 1
    assert "--max-num-seqs is 4, approved is 8" in out
    assert f"sre-agent change {SERVICE} --set-flag max-num-seqs=8" in out


def test_a_stopped_and_a_deleted_service_say_so(asked, capsys):
    app = build_app(read_settings())
    change(app, Lifecycle(operation=LifecycleOperation.STOP), key="k1aaaaaaa")
    assert json.loads(said(capsys, "--json")[1])["condition"] == "stopped"
    change(app, Lifecycle(operation=LifecycleOperation.DELETE, confirmed=SERVICE), key="k2aaaaaaa")
    row = json.loads(said(capsys, "show", SERVICE, "--json")[1])
    assert (row["condition"], row["revision"]) == ("not deployed", None)
    assert "was deleted" in row["why"]
    assert said(capsys, "drift")[0] == 3


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["show"], "sre-agent services list"),
        (["show", "nobody"], "name one of those"),
        (["drift", "nobody"], "name one of those"),
        (["list", SERVICE], f"sre-agent services show {SERVICE}"),
    ],
    ids=" ".join,
)
def test_bad_input_has_a_hint(asked, capsys, words, hint):
    code, out, err = said(capsys, *words)
    assert (code, out) == (2, "")
    assert hint in err
