"""Pictures of every screen of the console at both widths, and the page docs/console-screens.md that shows them.

`python -m tools.console_pictures` takes them anew from the product itself, at every moment of tools/console_scenes.py,
and needs Chromium. `--page` writes the page alone.
"""

import argparse
import base64
import shutil
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agent.structured_log import structlog
from tools.console_scenes import SCENES

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE, PICTURES = ROOT / "docs" / "console-screens.md", ROOT / "docs" / "pictures"
WIDTHS: Final = {"desk": (1440, 900), "phone": (390, 844)}
QUALITY: Final = 60
MOST_BYTES: Final = 6_000_000
HEAD: Final = """# The screens of the console

Every page of the console, and the page of an incident in every phase, at 1440x900 and at 390x844: what is seen without
scrolling. `python -m tools.console_pictures` takes the pictures from the product itself and writes this page.

**The five-second test.** After five seconds before a screen somebody must be able to say its sentence: what is broken,
why, and what to do now. The three rows under it are the words that let them, and where they stand. A test opens each
screen at both widths and fails if one of the three is not in the first view, or if a button that answers is not.
"""


@dataclass(frozen=True)
class Screen:
    """One screen, and what somebody must be able to say after five seconds before it.

    Attributes:
        name: Of its pictures and of its page in tools/console_scenes.py.
        says: The sentence.
        what: What is broken: the name of a place, and words that stand there.
        why: Why it is, as ``what``.
        now: What to do now, as ``what``.
        phase: Of its incident; empty where it is a page of something else.
    """

    name: str
    says: str
    what: Sequence[str]
    why: Sequence[str]
    now: Sequence[str]
    phase: str = ""


def screens() -> dict[str, Screen]:
    """Return every screen by its name."""
    rows: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("console_screens.toml").read_text())["screen"]
    return {row["name"]: Screen(**row) for row in rows}


def page() -> str:
    """Return the page as Markdown."""
    return HEAD + "".join(map(_section, screens().values()))


def _section(screen: Screen) -> str:
    said = {"what": screen.what, "why": screen.why, "what now": screen.now}
    rows = "".join(f"| {name} | {where} | `{words}` |\n" for name, (where, words) in said.items())
    shown = "\n".join(f"![{screen.name} on a {width}](pictures/{screen.name}-{width}.webp)" for width in WIDTHS)
    phase = f" ({screen.phase})" if screen.phase else ""
    return f"\n## {screen.name}{phase}\n\n{screen.says}\n\n| | where | words |\n|---|---|---|\n{rows}\n{shown}\n"


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the machine's Chromium; yields its browser.

    Raises:
        FileNotFoundError: There is none.
    """
    from playwright.sync_api import sync_playwright

    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        raise FileNotFoundError(names[0])
    with sync_playwright() as playwright:
        # root has no sandbox to enter, and CI runs as root
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def take(folder: Path) -> int:
    """Take the pictures of every screen into a folder that then holds no other; returns their bytes."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    with chromium() as browser:
        for name, (width, height) in WIDTHS.items():
            context = browser.new_context(viewport={"width": width, "height": height}, java_script_enabled=False)
            tab = context.new_page()
            camera = context.new_cdp_session(tab)
            for scene in SCENES:
                for url, pages in scene():
                    for screen, path in pages.items():
                        open_screen(tab, url, path)
                        shot = camera.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
                        Path(folder, f"{screen}-{name}.webp").write_bytes(base64.b64decode(shot["data"]))
            context.close()
    taken = {path.name for path in folder.iterdir()}
    wanted = {f"{screen}-{width}.webp" for screen in screens() for width in WIDTHS}
    assert taken == wanted, f"tools/console_screens.toml and tools/console_scenes.py differ in {taken ^ wanted}"
    return sum(path.stat().st_size for path in folder.iterdir())


def open_screen(tab: Any, url: str, path: str) -> None:
    """Open a page of the console; a report, which a browser would store as a file, is opened as that file."""
    if path.endswith("report.html"):
        report = tab.request.get(url + path).text()
        tab.goto("about:blank")  # a page of the console lets no style in but its own
        tab.set_content(report)
    else:
        tab.goto(url + path)


def main() -> None:
    """Write the page, and the pictures unless only the page is wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="write docs/console-screens.md alone")
    if not parser.parse_args().page:
        size = take(PICTURES)
        print(f"{len(list(PICTURES.iterdir()))} pictures, {size:,} of at most {MOST_BYTES:,} bytes")
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
