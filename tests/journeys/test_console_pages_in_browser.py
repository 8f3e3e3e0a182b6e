"""Every page beside the one of an incident, in a real browser without scripts: both widths, both schemes, by keyboard."""

import shutil

import pytest

from tests.agent.entrypoints.console.every_page import PAGES, every_page
from tests.outside import absent
from tools.console_page_pictures import WIDTHS, served

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def chromium():
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        absent("Chromium: apt-get install --no-install-recommends chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # root has no sandbox to enter, and CI runs as root
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with served(every_page(tmp_path_factory.mktemp("state"), stopped=True)) as address:
        yield address


@pytest.fixture
def open_page(chromium):
    made = []

    def opened(width="phone", scheme="light"):
        size = dict(zip(("width", "height"), WIDTHS[width], strict=True))
        made.append(chromium.new_context(viewport=size, java_script_enabled=False, color_scheme=scheme))
        page = made[-1].new_page()
        page.set_default_timeout(10_000)
        return page

    yield opened
    for context in made:
        context.close()


@pytest.mark.parametrize(("width", "scheme"), [("phone", "light"), ("desk", "dark")])
def test_no_page_scrolls_sideways_and_the_kill_switch_is_above_the_fold(url, open_page, width, scheme):
    page = open_page(width, scheme)
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    for name, path in PAGES.items():
        assert page.goto(url + path).status == 200, name
        box = page.locator("main").bounding_box()
        widest = page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)")
        assert widest <= WIDTHS[width][0], f"{name} is {widest} px wide"
        assert box["width"] <= WIDTHS[width][0], name
        assert page.locator("h1").count() == 1, name
        stop = page.get_by_role("complementary", name="Kill switch").bounding_box()
        assert stop["y"] + stop["height"] < WIDTHS[width][1] or "#" in path, name
    assert complaints == []


def test_a_phone_reaches_every_place_from_the_menu_by_keyboard(url, open_page):
    page = open_page()
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
        page = open_page("desk")
        page.goto(address + "/services")
        page.get_by_role("complementary", name="Kill switch").get_by_role("link").click()
        page.get_by_label("Reason").fill("Cloud Run is back")
        page.get_by_role("button", name="Turn the kill switch off").click()
        assert page.get_by_role("complementary", name="Kill switch").count() == 0
        assert "Turned off by ada" in page.get_by_role("main").inner_text()


def test_a_dead_letter_is_delivered_again_by_its_button(tmp_path, open_page):
    with served(every_page(tmp_path)) as address:
        page = open_page()
        page.goto(address + "/queue")
        page.get_by_role("button", name="Deliver again").click()
        assert "None." in page.get_by_role("main").inner_text()
        page.goto(address + "/audit")
        assert "dead_letter.redelivery" in page.get_by_role("main").inner_text()


def test_an_incident_is_found_by_its_words(url, open_page):
    page = open_page()
    page.goto(url)
    page.get_by_label("Words").fill("output head 262,144")
    page.get_by_role("button", name="Search").click()
    assert page.get_by_role("listitem").filter(has_text="gemma4-31b-l4").count() == 1
    assert page.get_by_role("heading", level=2).count() == 1
