"""Takes pictures of the console's other pages at the width of a desk and of a phone, for docs/pictures.

Run it with `python -m tools.console_page_pictures`; it needs Chromium.
"""

import argparse
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from agent.entrypoints.console.serve import claim, local_server
from tests.agent.entrypoints.console.every_page import PAGES, empty_pages, every_page

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "pictures"
WIDTHS: Final = {"desk": (1440, 900), "phone": (390, 844)}
SCALES: Final = {"desk": 0.6, "phone": 1.0}  # pictures of pixels by pixel of the page, so that they stay small


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve a console on loopback; yields its address."""
    with claim(0) as held:
        server = local_server(app, at=held)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.close()


def take(browser: Any, url: str, pages: Mapping[str, str], folder: Path, *, scheme: str = "light") -> None:
    """Take a picture of each page, as much of it as one screen shows, at both widths."""
    for width_name, (width, height) in WIDTHS.items():
        context = browser.new_context(
            viewport={"width": width, "height": height},
            device_scale_factor=SCALES[width_name],
            java_script_enabled=False,
            color_scheme=scheme,
        )
        page = context.new_page()
        for name, path in pages.items():
            page.goto(url + path)
            page.screenshot(path=str(folder / f"{name}-{width_name}.png"))
        context.close()


def main() -> None:
    """Take all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=FOLDER, help="folder of the pictures (default docs/pictures)")
    folder = parser.parse_args().to
    folder.mkdir(parents=True, exist_ok=True)
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as state:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        with served(every_page(Path(state))) as url:
            take(browser, url, PAGES, folder)
        with served(empty_pages()) as url:
            take(browser, url, {"incidents-empty": "/"}, folder)
        Path(state, "stopped").mkdir()
        with served(every_page(Path(state, "stopped"), stopped=True)) as url:
            take(browser, url, {"kill-switch-on": "/kill-switch"}, folder)
            take(browser, url, {"incidents-stopped-dark": "/"}, folder, scheme="dark")
        browser.close()


if __name__ == "__main__":
    main()
