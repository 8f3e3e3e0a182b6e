"""The forms of a service's page: looked at before they are sent, wrong beside the field, nothing typed is lost."""

import html
import re
from pathlib import Path

import pytest

from agent.app import build_app
from agent.core.change.config_drift import Drift
from agent.core.plan.action import Lifecycle, LifecycleOperation
from agent.core.planning.requested import NothingToChange
from agent.core.value import digest
from agent.entrypoints.console.app import make_app
from agent.entrypoints.console.change_form import Typed, read_typed, target_typed
from agent.ports.platform import Order
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import read_settings
from tests.leases import HELD

SERVICE = "gemma4-26b-qat-l4"
EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "gemma4-26b-l4-context-refused"
BASE = "http://127.0.0.1:8080"
LIFECYCLE = f'lifecycle = ["{SERVICE}"]\n'


class Page:
    """A browser on the page of the service, over an installation whose platform is a rehearsal."""

    def __init__(self, folder, policy=""):
        (folder / "policy.toml").write_text(policy)
        environ = {"STORE": f"sqlite:{folder}", "PLATFORM": f"rehearsal:{EXAMPLE}"}
        environ |= {"POLICY": str(folder / "policy.toml")} if policy else {}
        self.app = build_app(read_settings(environ))
        world = self.app.contexts[Owner.DECIDE]
        self.browser = make_app(world, settings=self.app.settings, operator="ada").test_client()
        self.open()

    def open(self, path=""):
        self.text = self.browser.get(f"/services/{SERVICE}{path}", base_url=BASE).get_data(as_text=True)
        return self

    def send(self, do="preview", form="change", **typed):
        hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', self.text))
        said = {name: html.unescape(value) for name, value in hidden.items()} | {"form": form, "do": do, **typed}
        said.setdefault("why", "longer documents")
        place = f"/services/{SERVICE}/requests"
        answer = self.browser.post(place, data=said, headers={"Origin": BASE}, base_url=BASE)
        self.text, self.status = answer.get_data(as_text=True), answer.status_code
        return self

    @property
    def words(self):
        """The page as people read it."""
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", self.text)).split())

    def beside(self, field):
        """What is said beside a field."""
        found = re.search(rf'name="{field}"[^>]*aria-invalid="true".*?</p>', self.text, re.DOTALL)
        return html.unescape(re.search(r'class="wrong" role="alert">(.*?)</span>', found[0])[1]) if found else ""

    def value(self, field):
        """What stands in a field."""
        line = re.search(rf'<input id="{field}"[^>]* value="([^"]*)"', self.text)
        area = re.search(rf'<textarea id="{field}"[^>]*>(.*?)</textarea>', self.text, re.DOTALL)
        return html.unescape((line or area)[1])

    def recorded(self):
        return self.app.store.incidents(Query())


@pytest.fixture
def page(tmp_path):
    return Page(tmp_path)


@pytest.fixture
def listed(tmp_path):
    return Page(tmp_path, LIFECYCLE)


def test_a_preview_shows_the_plan_and_stores_nothing(page):
    """Difference, proof, cost, speed before and after, the policy's answer and who may approve."""
    page.send(set_flag="max-model-len=32768")
    assert page.status == 200
    for words in (
        "Preview: nothing is stored or changed yet",
        "flag --max-model-len 16384 32768",
        "Memory computed",
        "USD/h, as before",
        "tokens/s now",
        "May approve you, on this machine",
        "Policy: limits",
    ):
        assert words in page.words, words
    assert page.recorded() == ()
    assert page.value("set_flag") == "max-model-len=32768"


def test_what_was_looked_at_is_what_is_asked_for(page):
    """The state that the page showed goes along: if the service changes meanwhile, the request is refused."""
    target = page.app.environment.platform_of(SERVICE).describe(SERVICE).target
    page.send(set_flag="max-model-len=32768").send("ask", set_flag="max-model-len=32768")
    assert page.status == 303
    (life,) = page.recorded()
    assert life.request.target == target


def test_a_service_that_changed_since_the_page_was_opened_is_not_asked_for(page):
    platform = page.app.environment.platform_of(SERVICE)
    page.send(concurrency="2")
    old = page.text
    order = Order(
        service=SERVICE, incident="i", effect_key="k1aaaaaaa", revision=f"{SERVICE}-k1", etag=platform.describe(SERVICE).etag,
        actions=(Lifecycle(operation=LifecycleOperation.STOP),), lease_end=HELD,
    )  # fmt: skip
    platform.apply(order)
    page.send("ask", concurrency="2")
    assert (page.status, "The service changed since" in page.words) == (403, True)
    assert page.value("concurrency") == "2"
    assert page.recorded() == ()
    assert page.text != old


@pytest.mark.parametrize(
    ("typed", "status", "field", "says"),
    [
        ({"set_flag": "api-key=x"}, 403, "set_flag", "Flag --api-key is not on the allow-list"),
        ({"set_flag": "max-model-len=many"}, 403, "set_flag", "'many' is no value of flag --max-model-len"),
        ({"set_flag": "a=1\na=2"}, 400, "set_flag", "Flag --a has two values"),
        ({"unset_flag": "a b"}, 400, "unset_flag", "'a b' is no name of a flag"),
        ({"scale": "many"}, 400, "scale", "--scale 'many' is no MIN:MAX"),
        ({"scale": "1:400"}, 403, "scale", "400 instances are above the limit"),
        ({"concurrency": "0"}, 400, "concurrency", "no whole number from 1 to 1000"),
        ({"resources": "8"}, 400, "resources", "is no CPU:MEMORY"),
        ({"concurrency": "2", "why": " "}, 400, "why", "It needs a reason"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_what_is_wrong_stands_beside_its_field_and_nothing_typed_is_lost(page, typed, status, field, says):
    """The rest of the form is as it was typed."""
    others = {"why": "because <b>"} | typed
    page.send("ask", **others)
    assert (page.status, says in page.beside(field)) == (status, True), page.beside(field)
    for name, value in others.items():
        shown = page.value("why_change" if name == "why" else name)
        assert shown == value.strip()
    assert page.recorded() == ()


def test_what_does_not_fit_says_the_nearest_that_does(page):
    page.send(set_flag="max-model-len=300000")
    assert (page.status, "This does: " in page.words) == (403, True)


def test_what_is_so_already_is_said_and_is_no_error(page):
    page.send("ask", set_flag="max-model-len=16384")
    assert (page.status, "Nothing to change: the service is already as you want it" in page.words) == (200, True)
    assert page.recorded() == ()


def test_a_lifecycle_says_what_stops_answering_and_a_deletion_wants_the_name(listed):
    """Asked for by its own form; nothing but the typed name makes it a request."""
    assert f"{SERVICE} answers no requests until it is started again" in listed.words
    assert "It cannot be undone" in listed.words
    assert "Start The instances" not in listed.words
    listed.send("ask", "lifecycle", lifecycle="delete", confirmed="gemma", why="not needed")
    assert (listed.status, "wants the name of the service typed" in listed.beside("confirmed")) == (403, True)
    assert listed.value("confirmed") == "gemma"
    assert listed.recorded() == ()
    listed.send("ask", "lifecycle", lifecycle="delete", confirmed=SERVICE, why="not needed")
    assert listed.status == 303
    (life,) = listed.recorded()
    assert life.request.actions == (Lifecycle(operation=LifecycleOperation.DELETE, confirmed=SERVICE),)


def test_a_stop_is_looked_at_first(listed):
    listed.send("preview", "lifecycle", lifecycle="stop", why="night")
    assert listed.status == 200
    assert f"Trade-off: {SERVICE} answers no requests until it is started again" in listed.words
    assert "max_instances 1 0" in listed.words


def test_nothing_chosen_is_said(listed):
    listed.send("ask", "lifecycle", why="night")
    assert (listed.status, "Nothing is asked for" in listed.words) == (400, True)


def test_what_policy_does_not_allow_comes_with_the_commands_for_a_person(page):
    assert "gcloud run services update gemma4-26b-qat-l4 --project example-project" in page.words
    assert "gcloud run services delete" in page.words
    page.send("ask", "lifecycle", lifecycle="stop", why="night")
    assert (page.status, "by hand: gcloud run services update" in page.words) == (403, True)
    assert page.recorded() == ()


def test_the_form_is_filled_in_with_the_way_back(page, monkeypatch):
    """What differs from the declaration, for the person to look over and send."""
    rows = (Drift(path="flag --max-num-seqs", wanted="4", live="8", against="declared"),)
    monkeypatch.setattr("agent.stages.shared.service_view.drift_of", lambda *_, **__: rows)
    assert f'href="/services/{SERVICE}?as_declared=1#change"' in page.open().text
    page.open("?as_declared=1")
    assert (page.value("set_flag"), page.value("why_change")) == ("max-num-seqs=4", "as declared")
    page.send("ask", set_flag=page.value("set_flag"), why=page.value("why_change"))
    assert page.status == 303
    assert [row.why for row in [page.recorded()[0].request]] == ["as declared"]


def test_a_target_that_was_tampered_with_is_refused(page):
    for raw in ("{", "[]", '{"service": 1}', "x" * 3000):
        page.open().send("ask", concurrency="2", target=raw)
        assert (page.status, "own fields were changed" in page.words) == (400, True)
    assert page.recorded() == ()
    assert target_typed(Typed()) is None


def test_a_secret_that_was_typed_is_not_shown_again(page):
    token = f"hf_{digest(['a token'])[:34]}"
    page.send("ask", set_flag=f"api-key={token}\nmax-model-len=many")
    assert token not in page.text
    assert page.value("set_flag").splitlines()[1] == "max-model-len=many"
    assert read_typed({"form": "x", "why": " y "}) == Typed(form="change", why="y")
    assert NothingToChange.exit_code == 0
