"""Every screen of the console in a real browser: five seconds are enough, buttons in the first view, axe, by keyboard."""

import pytest

from agent.core.incident.phase import Phase
from tests import counts
from tests.agent.entrypoints.console.every_page import PAGES, every_page
from tests.outside import absent
from tools.console_pictures import WIDTHS, open_screen, screens
from tools.console_scenes import SCENES, served

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

SCREENS = screens()
PLACES = {
    "headline": "h1",
    "status": "[role=status]",
    "impact": ".impact",
    "key log line": ".decisive",
    "result": ".what :is(.card, .notice)",
    "plan": ".plan",
    "buttons": ".buttons",
    "decision": ".decide",
    "progress": ".live",
    "people": ".acts",
    "kill switch": ".stop",
    "first line": ".lede",
    "card": ".card",
    "empty": ".empty",
    "figures": ".facts",
    "table": "table",
    "form": "main form",
    "page": "main",
}
"""Where on a screen words stand: selector by the name that tools/console_screens.toml uses."""
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    "resultTypes": ["violations"],  # what passes is said of one element and no more
    "rules": {"meta-refresh": {"enabled": False}},  # criterion 2.2.1 takes it where it can be turned off
}
IN_VIEW = """([selector, words]) => {
  const seen = (range, place) => {
    let {top, bottom, left, right} = range.getBoundingClientRect();
    for (let e = place; e; e = e.parentElement) {
      if (getComputedStyle(e).overflowY === 'visible' || e === document.documentElement) continue;
      const clip = e.getBoundingClientRect();
      if (top < clip.top - 1 || bottom > clip.bottom + 1) return false;
    }
    return right > left && left >= 0 && top >= 0 && bottom <= innerHeight && right <= innerWidth;
  };
  for (const place of document.querySelectorAll(selector)) {
    const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT), spots = [];
    let text = '';
    while (walker.nextNode()) [...walker.currentNode.data].forEach((letter, at) => {
      const said = /\\s/.test(letter) ? ' ' : letter;
      if (said === ' ' && (!text || text.endsWith(' '))) return;
      text += said;
      spots.push([walker.currentNode, at]);
    });
    for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + 1)) {
      const range = document.createRange(), [last, letter] = spots[at + words.length - 1];
      range.setStart(...spots[at]);
      range.setEnd(last, letter + 1);
      if (seen(range, spots[at][0].parentElement)) return true;
    }
  }
  return false;
}"""
BELOW = """() => {
  const shown = all => [...all].filter(e => e.checkVisibility() && e.getClientRects().length);
  const answers = shown(document.querySelectorAll('.buttons button, .buttons summary, .decide > form > button'));
  const acts = shown(document.querySelectorAll('.acts button, .acts summary'));
  return (answers.length ? answers : acts).filter(e => {
    const {top, bottom} = e.getBoundingClientRect();
    return top < 0 || bottom > innerHeight || bottom - top < 32;
  }).map(e => e.innerText);
}"""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with served(every_page(tmp_path_factory.mktemp("state"), stopped=True)) as address:
        yield address


def faults(page, name) -> list[str]:
    """What keeps a reader of a screen from saying its sentence after five seconds, and from answering."""
    screen, found = SCREENS[name], []
    for width, size in WIDTHS.items():
        page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
        widest = page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)")
        found += [f"{name}, {width}: {widest} px wide"] if widest > size[0] else []
        for place, words in (screen.what, screen.why, screen.now):
            if not page.evaluate(IN_VIEW, [PLACES[place], words]):
                found.append(f"{name}, {width}: {words!r} is not seen in {place}")
        found += [f"{name}, {width}: the button {said!r} is not in the first view" for said in page.evaluate(BELOW)]
    return found


def serious(page, name, looks) -> list[str]:
    """What axe says that keeps people out, all that is folded unfolded; for each width and colour scheme to look at."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        absent("axe-playwright-python, a development requirement: make install")
    if not looks:
        return []
    if page.locator("head > meta[http-equiv=refresh]").count():
        assert page.get_by_role("link", name="Pause").is_visible(), name
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    page.evaluate(Axe().axe_script)
    found = []
    for width, scheme in looks:
        page.set_viewport_size(dict(zip(("width", "height"), WIDTHS[width], strict=True)))
        page.emulate_media(color_scheme=scheme)
        violations = page.evaluate("async rules => (await axe.run(document, rules)).violations", RULES)
        found += [
            f"{width}, {scheme}: {name}: {v['id']}: {v['nodes'][0]['html'][:200]}"
            for v in violations
            if v["impact"] in {"serious", "critical"}
        ]
    return found


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_five_seconds_are_enough_and_axe_finds_nothing_serious(open_page, scene):
    """What, why and what now of tools/console_screens.toml, and each button that answers, in the first view at both widths.

    Axe takes a second for each page: under CI=true it sees each at both widths, light and dark, else the first of each scene in one way.
    """
    page, found, looked = open_page(scripts=True).page, [], 0
    for address, pages in scene():
        for name, path in pages.items():
            open_screen(page, address, path)
            found += faults(page, name)
            looks = [(width, scheme) for width in WIDTHS for scheme in ("light", "dark")]
            found += serious(page, name, looks if counts.CI else looks[SCENES.index(scene) % 4 :][: looked < 1])
            looked += 1
    assert not found, "\n".join(found)


def test_every_phase_has_its_screen():
    """An incident is looked at in each phase of its life."""
    assert {screen.phase for screen in SCREENS.values()} - {""} == set(Phase)


def test_the_kill_switch_stands_above_every_page(url, open_page):
    """Loud on a phone without scrolling, and no page complains."""
    seen = open_page(width=390, height=844)
    for name, path in PAGES.items():
        assert seen.page.goto(url + path.partition("#")[0]).status == 200, name
        assert seen.page.locator("h1").count() == 1, name
        stop = seen.page.get_by_role("complementary", name="Kill switch").bounding_box()
        assert stop["y"] + stop["height"] < 844, name
    assert seen.complaints == []


def test_a_phone_reaches_every_place_from_the_menu_by_keyboard(url, open_page):
    page = open_page(width=390, height=844).page
    page.goto(url)
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to the content"
    for _ in range(2):
        page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Menu"
    page.keyboard.press("Enter")
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Changes"
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name="Changes").wait_for()


def test_the_kill_switch_is_turned_off_with_a_reason(tmp_path, open_page):
    with served(every_page(tmp_path, stopped=True)) as address:
        page = open_page().page
        page.goto(address + "/services")
        page.get_by_role("complementary", name="Kill switch").get_by_role("link").click()
        page.get_by_label("Reason").fill("Cloud Run is back")
        page.get_by_role("button", name="Turn the kill switch off").click()
        assert page.get_by_role("complementary", name="Kill switch").count() == 0
        assert "Turned off by ada" in page.get_by_role("main").inner_text()


def test_a_dead_letter_is_delivered_again_by_its_button(tmp_path, open_page):
    with served(every_page(tmp_path)) as address:
        page = open_page(width=390, height=844).page
        page.goto(address + "/queue")
        page.get_by_role("button", name="Deliver again").click()
        assert "None." in page.get_by_role("main").inner_text()
        page.goto(address + "/audit")
        assert "dead_letter.redelivery" in page.get_by_role("main").inner_text()


def test_an_incident_is_found_by_its_words(url, open_page):
    page = open_page(width=390, height=844).page
    page.goto(url)
    page.get_by_label("Search", exact=True).fill("output head 262,144")
    page.get_by_role("button", name="Search").click()
    assert page.get_by_role("listitem").filter(has_text="gemma4-31b-l4").count() == 1
    assert page.get_by_role("heading", level=2).count() == 1
