"""The console in a real browser, with scripts switched off: read, approve, reject, and every way to come too late."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agent.core.decision.decision import Channel, Choice, Person
from agent.core.decision.policy import Approver, Policy
from agent.core.incident.phase import Phase
from agent.entrypoints.console.app import make_app
from agent.ports.stage_context import Owner
from agent.settings import Settings
from tests.agent.entrypoints.console import scenes as theatre
from tests.loopback import Loopback
from tools.console_scenes import served

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

WIDTHS = {"phone": 360, "desk": 1280}


@pytest.fixture
def scenes():
    return theatre


def serving(world, **more):
    return served(make_app(world, **({"settings": Settings(), "operator": "ada"} | more)))


def foreign_page(html: str) -> Loopback:
    """A page of somebody else on this machine, on a port of its own."""
    return Loopback(lambda _: (200, html.encode(), {"Content-Type": "text/html"}), methods=["GET"])


@pytest.fixture
def stage(scenes):
    return scenes.a_stage()


@pytest.fixture
def url(stage):
    with serving(stage.world) as address:
        yield address


@pytest.mark.parametrize(
    "width",
    [pytest.param(w, id=name, marks=pytest.mark.journey if name == "phone" else ()) for name, w in WIDTHS.items()],
)
def test_from_the_list_to_an_approval(stage, url, open_page, width):
    incident = stage.waiting()
    seen = open_page(width=width)
    page = seen.page
    page.goto(url)
    assert page.get_by_role("heading", level=1).inner_text() == "Incidents"
    page.get_by_role("link", name="The startup probe gave up after 780 s").click()
    assert "STARTUP HTTP probe failed" in page.get_by_label("The key log line").inner_text()
    page.get_by_role("button", name="Approve and apply this change").click()
    assert page.get_by_role("heading", level=1).inner_text() == "Approved"
    assert "Approved by ada (not verified)" in page.get_by_role("status").inner_text()
    assert stage.world.store.load(incident.id).phase is Phase.APPROVED
    page.reload()
    assert page.get_by_role("heading", level=1).inner_text() == "Approved"
    page.get_by_role("link", name="Watch what happens").click()
    assert page.locator("meta[http-equiv=refresh]").count() == 1
    assert seen.hosts == {urlsplit(url).netloc}
    assert seen.complaints == []


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS.keys())
def test_rejecting_asks_for_a_reason_and_keeps_it(stage, url, open_page, width):
    incident = stage.waiting()
    page = open_page(width=width).page
    page.goto(f"{url}/incidents/{incident.id}")
    page.get_by_text("Reject", exact=True).click()
    page.get_by_role("button", name="Reject this plan").click()
    assert stage.world.store.load(incident.id).phase is Phase.ASKED
    page.get_by_role("textbox", name="Why not?").fill("the bucket is being moved")
    page.get_by_role("button", name="Reject this plan").click()
    assert page.get_by_role("heading", level=1).inner_text() == "Rejected"
    assert stage.world.store.load(incident.id).decision.why == "the bucket is being moved"


def test_coming_too_late(stage, url, open_page):
    incident = stage.waiting()
    page = open_page().page
    page.goto(f"{url}/plans/{incident.plan.id}")
    stage.clock.at = incident.plan.expires_at
    page.get_by_role("button", name="Approve").click()
    assert page.get_by_role("heading", level=1).inner_text() == "This plan has expired"
    assert stage.world.store.load(incident.id).decision is None


def test_somebody_was_faster(stage, url, open_page):
    incident = stage.waiting()
    page = open_page().page
    page.goto(f"{url}/plans/{incident.plan.id}")
    stage.said(incident, Choice.REJECT, who="maria", why="no")
    page.get_by_role("button", name="Approve").click()
    assert page.get_by_role("heading", level=1).inner_text() == "maria was faster"
    assert stage.world.store.load(incident.id).decision.who == "maria"


def test_the_plan_has_changed(stage, url, open_page, scenes):
    incident = stage.waiting()
    page = open_page().page
    page.goto(f"{url}/plans/{incident.plan.id}")
    stage.asked(stage.move(incident, Phase.SUPERSEDED, "more was learned"), scenes.memory_plan)
    page.get_by_role("button", name="Approve").click()
    assert page.get_by_role("heading", level=1).inner_text() == "This is not the plan any more"
    page.get_by_role("link", name="Look at plan 2 and decide").click()
    assert page.get_by_role("rowheader", name="flag --max-model-len").is_visible()
    page.get_by_role("button", name="Approve").click()
    assert page.get_by_role("heading", level=1).inner_text() == "Approved"


class Proven:
    """Somebody whose name is proven, as the proxy would."""

    local = True

    def person(self, headers):
        return Person(who="eve@example.com", channel=Channel.CONSOLE, verified=True)


def test_the_wrong_person_sees_why_and_has_no_button(scenes, open_page):
    staged = scenes.a_stage(Policy(approvers=(Approver(name="A", email="ada@example.com", services=("gemma4-*",)),)))
    incident = staged.waiting()
    with serving(staged.world, identity=Proven()) as url:
        page = open_page().page
        page.goto(f"{url}/incidents/{incident.id}")
        assert page.get_by_role("button").count() == 0
        assert "names no approver" in page.locator(".decide").inner_text()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"], ids=["same site", "another site"])
def test_a_foreign_page_cannot_press_the_button(stage, url, open_page, host):
    """The attacker knows the plan and even a token of their own; the victim's browser sends the form by itself."""
    incident = stage.waiting()
    seen = open_page(scripts=True)
    seen.page.goto(f"{url}/plans/{incident.plan.id}")
    token = seen.page.locator("input[name=token]").first.get_attribute("value")
    fields = {"answer": "approve", "digest": incident.plan.digest, "token": token}
    inputs = "".join(f'<input name="{k}" value="{v}">' for k, v in fields.items())
    html = (
        f'<form method=post action="{url}/plans/{incident.plan.id}/decision">{inputs}</form>'
        "<script>document.forms[0].submit()</script>"
    )
    with foreign_page(html) as foreign:
        with seen.page.expect_navigation(url=f"{url}/**"):
            seen.page.goto(f"http://{host}:{foreign.port}/")
        assert "did not come from a fresh page of ours" in seen.page.get_by_role("heading", level=1).inner_text()
    assert stage.world.store.load(incident.id).version == incident.version


def test_a_foreign_page_cannot_frame_ours(stage, url, open_page):
    """No invisible button under somebody else's."""
    incident = stage.waiting()
    seen = open_page(scripts=True)
    with foreign_page(f'<iframe src="{url}/plans/{incident.plan.id}"></iframe>') as foreign:
        seen.page.goto(foreign.url)
        seen.page.wait_for_load_state("networkidle")
        frame = seen.page.frames[1]
        assert frame.get_by_role("button").count() == 0
        assert any("frame-ancestors" in c or "X-Frame-Options" in c for c in seen.complaints)


HOSTILE = '<img src=x onerror="document.title=1"><script>document.title="got you"</script><a href=//evil.example>x</a>'


def test_a_hostile_log_line_does_nothing_with_scripts_on(stage, url, open_page, scenes):
    diagnosis = scenes.probe_diagnosis(
        stage.clock.now(),
        root_cause=f"{HOSTILE} https://evil.example \u202e",
        evidence=(scenes.Evidence(signal="s1", line=HOSTILE, decisive=True),),
    )
    incident = stage.waiting(diagnosis=diagnosis, plan={"why": HOSTILE})
    seen = open_page(scripts=True)
    for path in ("/", f"/incidents/{incident.id}", f"/plans/{incident.plan.id}"):
        seen.page.goto(url + path)
        seen.page.wait_for_load_state("networkidle")
        assert seen.page.locator("script, img, iframe, a[href*=evil]").count() == 0
        assert "got you" not in seen.page.title()
    assert seen.hosts == {urlsplit(url).netloc}
    assert seen.complaints == []


def every_page(stage, scenes) -> list[str]:
    waits = stage.waiting("waits", make=scenes.memory_plan, diagnosis=scenes.memory_diagnosis(stage.clock.now()))
    person = stage.waiting("person", make=scenes.person_plan)
    measured = stage.verifying(stage.applying(stage.said(stage.waiting("measured"), Choice.APPROVE)), good=False)
    gone = stage.escalated(stage.rolled_back(measured))
    long = stage.waiting(
        "long" * 15,
        diagnosis=scenes.probe_diagnosis(
            stage.clock.now(), root_cause="x" * 300, evidence=(scenes.Evidence(signal="s1", line="A" * 3000, decisive=True),)
        ),
        plan={"why": "y" * 300, "undo": "z" * 300},
    )  # fmt: skip
    stage.clock.at = waits.plan.expires_at.replace(second=0)
    incidents = [f"/incidents/{i.id}?still=1" for i in (waits, person, gone, long)]
    return ["/", "/?service=none", *incidents, f"/plans/{waits.plan.id}", f"/plans/{gone.plan.id}/answer", "/nowhere"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS.keys())
def test_every_page_fits_its_screen_and_can_be_read(stage, url, open_page, scenes, width, scheme):
    """Nothing is wider than the screen, nothing to press is smaller than a finger, no text has less contrast than 4.5."""
    page = open_page(width=width, scripts=True, scheme=scheme).page
    for path in every_page(stage, scenes):
        page.goto(url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        faint = page.evaluate(CONTRAST)
        assert not faint, (path, faint[:6])
        small = page.evaluate(
            "[...document.querySelectorAll('button, summary')].filter(b => b.checkVisibility() && b.offsetHeight < 32).length"
        )
        assert small == 0, path


SCREENS = {"desk": (1440, 900), "phone": (390, 844)}
EXAMPLES = sorted(p.parent.name for p in (Path(__file__).resolve().parents[2] / "examples").glob("*/expected.json"))


def on_the_first_screen(page, locator) -> bool:
    """Whether it can be seen and pressed without scrolling."""
    box = locator.bounding_box()
    return box is not None and box["y"] >= 0 and box["y"] + box["height"] <= page.viewport_size["height"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_two_buttons_stand_on_the_first_screen(journey, open_page, example):
    """Of every bundled example, beside what is broken, the key log line, the trade-off and what policy asks."""
    told = journey(example)
    asked = told.until(lambda i: i.phase is Phase.ASKED)
    world = told.installation.contexts[Owner.DECIDE]
    with serving(world, settings=told.installation.settings) as url:
        for name, (width, height) in SCREENS.items():
            page = open_page(width=width, height=height).page
            page.goto(f"{url}/incidents/{asked.id}")
            seen = {
                "headline": page.get_by_role("heading", level=1),
                "key log line": page.get_by_label("The key log line"),
                "plan": page.locator(".plan .title"),
                "trade-off": page.locator(".takes-away"),
                "policy": page.locator(".policy"),
                "approve": page.locator("button.approve"),
                "reject": page.get_by_text("Reject", exact=True),
            }
            hidden = [what for what, found in seen.items() if not on_the_first_screen(page, found)]
            assert not hidden, (name, hidden)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            columns = page.evaluate("getComputedStyle(document.querySelector('.columns')).gridTemplateColumns")
            assert len(columns.split()) == (2 if name == "desk" else 1)


def test_a_page_follows_its_incident_without_being_loaded_anew(stage, url, open_page):
    """With scripts on: what was unfolded stays unfolded, and the stream ends with the incident."""
    incident = stage.applying(stage.said(stage.waiting(), Choice.APPROVE))
    seen = open_page(scripts=True)
    page = seen.page
    page.goto(f"{url}/incidents/{incident.id}")
    assert page.get_by_role("heading", name="Step 2 of 3").is_visible()
    page.evaluate("window.notLoadedAnew = true")
    page.get_by_text("Timeline").click()
    verifying = stage.verifying(incident)
    page.get_by_role("heading", name="Step 3 of 3").wait_for()
    assert page.locator("#timeline").get_attribute("open") is not None
    stage.resolved(verifying)
    page.get_by_role("heading", level=1, name="fixed").wait_for()
    assert page.evaluate("window.notLoadedAnew") is True
    assert page.locator("[data-live]").count() == 0
    assert seen.hosts == {urlsplit(url).netloc}
    assert seen.complaints == []


def test_a_screen_reader_hears_what_matters_in_order(stage, url, open_page, scenes):
    """Names and roles of the accessibility tree at phone width, where the table is laid out as a list."""
    incident = stage.waiting(make=scenes.memory_plan)
    page = open_page(width=WIDTHS["phone"]).page
    page.goto(f"{url}/incidents/{incident.id}")
    heard = page.locator("body").aria_snapshot()
    wanted = [
        'link "Skip to the content"',
        'heading "gemma4-26b-qat-l4: startup probe failed before the server was ready; one fix fits"',
        "A plan needs your approval until",
        'list "Progress"',
        'heading "Key log line"',
        'heading "The plan"',
        'img "Memory after the change: Of 21.96 GiB: weights 15.62 GiB',
        'button "Approve and apply this change"',
        'heading "Why this plan"',
        'table "Changes to the live configuration',
        'columnheader "After"',
        'rowheader "flag --max-model-len"',
        'img "Now: Of 21.96 GiB: weights 19.57 GiB',
        'heading "Diagnosis"',
        'heading "Timeline"',
    ]
    places = [heard.find(said) for said in wanted]
    assert -1 not in places, [said for said, place in zip(wanted, places, strict=True) if place == -1]
    assert places == sorted(places)


def tab_to(page, said: str) -> None:
    """Press Tab until what says this has the focus, which is seen."""
    focus = page.locator(":focus")
    for _ in range(40):
        page.keyboard.press("Tab")
        if said in (focus.inner_text() or focus.get_attribute("id") or ""):
            assert focus.evaluate("e => getComputedStyle(e).outlineStyle") == "solid", said
            return
    raise AssertionError(f"nothing says {said!r}")


def test_approving_by_keyboard(stage, url, open_page):
    incident = stage.waiting()
    page = open_page().page
    page.goto(f"{url}/incidents/{incident.id}")
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to the content"
    page.keyboard.press("Enter")
    tab_to(page, "Approve and apply this change")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.get_by_role("heading", level=1).inner_text() == "Approved"


def test_rejecting_by_keyboard(stage, url, open_page):
    """The form lies behind the button that opens it, and its parts follow in the order in which they are read."""
    incident = stage.waiting()
    page = open_page(width=390, height=844).page
    page.goto(f"{url}/incidents/{incident.id}")
    tab_to(page, "Approve and apply this change")
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Reject"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("the bucket is being moved")
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Reject this plan"
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert stage.world.store.load(incident.id).decision.why == "the bucket is being moved"


CONTRAST = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = colour => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = element => { for (let e = element; e; e = e.parentElement) {
    const colour = rgba(getComputedStyle(e).backgroundColor); if (colour[3] > 250) return colour; }
    return [255, 255, 255, 255]; };
  const faint = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.getClientRects().length) continue;
    const [a, b] = [light(rgba(getComputedStyle(element).color)), light(ground(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faint.push([element.tagName, element.className, element.textContent.slice(0, 40), ratio]);
  }
  return faint;
}"""
