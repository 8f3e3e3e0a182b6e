"""Pictures of the incident page in every phase, at the width of a desk and of a phone, from a rehearsal of the product.

Needs Chromium and Playwright (a development dependency): .venv/bin/python -m tools.console_pictures docs/pictures
"""

import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent.app import App, build_app_in_memory
from agent.core.decision.decision import Channel, Choice
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.entrypoints.cli.analysis import SteppedClock
from agent.entrypoints.console.app import make_app
from agent.entrypoints.console.serve import claim, local_server
from agent.entrypoints.pubsub.handlers import on_tick
from agent.entrypoints.service import feed, handlers, publish_example
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import read_settings
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCREENS = {"desk": (1440, 900), "phone": (390, 844)}
MOST_BYTES = 2_000_000


@dataclass
class Rehearsal:
    """One example as a service in memory, on a clock that is moved by hand."""

    app: App
    clock: SteppedClock
    since: datetime | None = None

    def until(self, reached: Callable[[Incident], bool], *, limit_s: int = 7200) -> Incident:
        """Go on, second by second, until the newest incident is as wanted."""
        work = self.app.worker(handlers(self.app), threads=1).run_due
        for _ in range(limit_s):
            self.since = feed(self.app, self.since)
            work()
            on_tick(self.app.contexts[Owner.TICK])
            work()
            found = self.app.store.incidents(Query(limit=1))
            if found and reached(found[0]):
                return found[0]
            self.clock.step(1)
        raise AssertionError(f"not reached: {[(i.phase, i.ended_why) for i in found]}")

    def answer(self, incident: Incident, choice: Choice, why: str = "") -> None:
        """Answer its plan."""
        assert incident.plan is not None
        word = DecisionRequest(
            plan=incident.plan.id, answer=choice, who="ada", channel=Channel.CONSOLE, verified=False, why=why
        )
        plan_to_decision(self.app.contexts[Owner.DECIDE], word)

    @contextmanager
    def console(self) -> Iterator[str]:
        """Serve its console on a free port."""
        with claim(0) as held:
            pages = make_app(
                self.app.contexts[Owner.DECIDE],
                settings=self.app.settings,
                operator="ada",
                wait_factor=self.app.environment.wait_factor,
            )
            server = local_server(pages, at=held)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.close()


def rehearsal(example: str, folder: Path) -> Rehearsal:
    """Return a rehearsal of an example, its recorded events published and nothing handled yet."""
    source = EXAMPLES / example
    clock = SteppedClock(datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
    app = build_app_in_memory(read_settings({}, platform=f"rehearsal:{source}"), clock=clock, state=folder)
    publish_example(app, source)
    return Rehearsal(app, clock)


def phases_of(told: Rehearsal, *, more: bool) -> Iterator[tuple[str, Incident]]:
    """Yield the phases of an example's life in which a page can be looked at, each with the incident at that time."""
    asked = told.until(lambda i: i.phase is Phase.ASKED)
    yield "asked", asked
    if not more:
        return
    told.answer(asked, Choice.APPROVE)
    yield "approved", told.app.store.load(asked.id)
    yield "applying", told.until(lambda i: i.phase is Phase.APPLYING and i.execution is not None)
    told.clock.step(20)
    yield "verifying", told.until(lambda i: i.phase is Phase.VERIFYING and i.verification is not None)
    yield "ended", told.until(lambda i: i.ended or i.phase is Phase.ASKED)


def chromium() -> str:
    """Return the machine's Chromium."""
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return next(path for path in found if path is not None)


def main(folder: Path, examples: list[str]) -> int:
    """Take the pictures; says the size of all of them, which is bounded."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for number, example in enumerate(examples or sorted(p.name for p in EXAMPLES.iterdir() if p.is_dir())):
            with tempfile.TemporaryDirectory() as state:
                told = rehearsal(example, Path(state))
                with told.console() as url:
                    for name, incident in phases_of(told, more=number in {3, 4} or bool(examples)):
                        take(browser, f"{url}/incidents/{incident.id}?still=1", folder / f"incident-{name}-{example}")
        browser.close()
    size = sum(path.stat().st_size for path in folder.glob("*.png"))
    sys.stdout.write(f"{len(list(folder.glob('*.png')))} pictures, {size:,} bytes\n")
    return 0 if size <= MOST_BYTES else 1


def take(browser: Any, url: str, stem: Path) -> None:
    """Take one page at both widths, as much of it as the screen shows, with few colours."""
    for name, (width, height) in SCREENS.items():
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(url)
        path = stem.with_name(f"{stem.name}-{name}.png")
        page.screenshot(path=path)
        page.close()
        if shutil.which("pngquant"):
            subprocess.run(["pngquant", "--force", "--ext", ".png", "64", str(path)], check=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
