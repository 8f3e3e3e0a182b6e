"""The databases that Terraform makes are the ones that the stores ask."""

from datetime import datetime
from pathlib import Path

from agent.adapters.bus.quarantine.firestore import FirestoreQuarantine
from agent.adapters.store.firestore.control import CONTROL_INDEXES, FirestoreControlStore
from agent.adapters.store.firestore.store import INDEXES, FirestoreStore
from agent.app.stores import CONTROL_DATABASE, STATE_DATABASE
from agent.ports.bus import Delivery
from tests.contracts import values

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


class Written:
    """Takes the documents of a store and remembers them by collection."""

    def __init__(self) -> None:
        self.documents: list[tuple[str, dict]] = []

    def create(self, path: str, data: dict) -> bool:
        self.documents.append((path, data))
        return True

    def write(self, writes) -> None:
        self.documents += [(one.path, one.data) for one in writes]

    def get(self, path: str) -> None:
        """Nothing was there before."""

    def count(self, *args, **more) -> int:
        return 0


def test_documents_that_may_go_say_when() -> None:
    """What the stores write with a time to go has a policy for that field in that collection, and nothing else has."""
    state, control = Written(), Written()
    clock = values.FakeClock()
    FirestoreStore(state, clock).accept(values.signal(), "inc-a")
    delivery = Delivery(topic=None, message_id="m1", data=b"x", subscription="s", attempt=1)
    FirestoreQuarantine(state, clock, redact=str).failed(delivery, "why")
    FirestoreControlStore(control).use_once("press-1", at=clock.now(), until=clock.now())
    going = {
        (database, path.split("/")[0], field)
        for database, written in (("state", state), ("control", control))
        for path, data in written.documents
        for field, value in data.items()
        if isinstance(value, datetime) and value > clock.now()
    }
    made = {
        (e["database"], e["collection"], e["field"]) for e in plain(read("databases_layout.tf")["expiring"]).values()
    }
    assert len(going) == 3
    assert made == going
