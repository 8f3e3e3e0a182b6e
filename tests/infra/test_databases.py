"""The databases that Terraform makes are the ones that the stores ask."""

import re
from pathlib import Path

from agent.adapters.bus.quarantine.firestore import FAILURES_TTL_FIELD
from agent.adapters.store.firestore.store import INDEXES, TTL_FIELD
from agent.adapters.store.firestore.control import CONTROL_INDEXES, CONTROL_TTL_FIELD
from agent.app.stores import CONTROL_DATABASE, STATE_DATABASE

ROOT = Path(__file__).resolve().parents[2]


def read(name: str) -> dict:
    """The locals of one file."""
    import hcl2

    found = hcl2.loads((ROOT / "infra" / name).read_text())
    return {key.strip('"'): value for block in found["locals"] for key, value in block.items()}


def plain(value):
    if isinstance(value, dict):
        return {k.strip('"'): plain(v) for k, v in value.items() if not k.startswith("__")}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value.strip('"') if isinstance(value, str) else value


def test_both_databases_have_the_names_that_the_code_opens() -> None:
    """State and control, each its own."""
    assert plain(read("databases.tf")["databases"]) == {"state": STATE_DATABASE, "control": CONTROL_DATABASE}


def test_every_composite_index_of_the_code_is_made_and_no_other() -> None:
    """A query without its index fails in the cloud, and only there."""
    made = {
        (i["database"], i["collection"], tuple((f["path"], f["order"]) for f in i["fields"]))
        for i in plain(read("databases_layout.tf")["indexes"]).values()
    }
    asked = {("state", c, tuple(f)) for c, f in INDEXES} | {("control", c, tuple(f)) for c, f in CONTROL_INDEXES}
    assert made == asked


def test_documents_that_may_go_say_when() -> None:
    """The fields of the time-to-live policies are the ones that the stores write."""
    made = {
        (e["database"], e["collection"], e["field"]) for e in plain(read("databases_layout.tf")["expiring"]).values()
    }
    assert made == {
        ("state", "signals", TTL_FIELD),
        ("state", "failures", FAILURES_TTL_FIELD),
        ("control", "used", CONTROL_TTL_FIELD),
    }


def test_every_collection_that_relies_on_a_ttl_has_a_policy() -> None:
    """Whoever writes ``kept_until`` into a document expects that it goes by itself."""
    names = re.compile(r"_FIELD: Final = \"kept_until\"")
    sources = [p for p in (ROOT / "agent" / "adapters").rglob("*.py") if names.search(p.read_text())]
    made = plain(read("databases_layout.tf")["expiring"])
    assert len(sources) == len(made)
