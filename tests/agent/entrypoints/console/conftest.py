"""A console over a world in memory, and a browser that keeps cookies and fills in forms."""

import re

import pytest

from agent.entrypoints.console.app import make_app
from agent.settings import Settings
from tests.agent.entrypoints.console import scenes as theatre

SETTINGS = Settings(platform="cloud_run:example")


class Browser:
    """Asks like a browser does: same origin, cookies kept, hidden fields sent back."""

    def __init__(self, app, *, headers=None):
        self.client = app.test_client()
        self.headers = headers or {}

    def get(self, path, **more):
        return self.client.get(
            path, headers=self.headers | more.pop("headers", {}), base_url="http://127.0.0.1:8080", **more
        )

    def fields(self, path):
        """The hidden fields of the page's forms, by answer."""
        page = self.get(path).get_data(as_text=True)
        forms = re.findall(r"<form method=\"post\".*?</form>", page, re.DOTALL)
        return {f["answer"]: f for f in (dict(re.findall(r'name="(\w+)" value="([^"]*)"', form)) for form in forms)}

    def post(self, path, data, **headers):
        own = {"Origin": "http://127.0.0.1:8080", "Sec-Fetch-Site": "same-origin"}
        sent = {k: v for k, v in (self.headers | own | headers).items() if v is not None}
        return self.client.post(path, data=data, headers=sent, base_url="http://127.0.0.1:8080")

    def answer(self, plan, answer, *, why="not now", **headers):
        data = self.fields(f"/plans/{plan.id}")[answer] | ({"why": why} if answer == "reject" else {})
        return self.post(f"/plans/{plan.id}/decision", data, **headers)


@pytest.fixture
def scenes():
    return theatre


@pytest.fixture
def stage():
    return theatre.a_stage()


@pytest.fixture
def browser(stage):
    return Browser(make_app(stage.world, settings=SETTINGS, operator="ada", metrics=True))


@pytest.fixture
def browser_of():
    def make(world, *, settings=SETTINGS, headers=None, **more):
        return Browser(
            make_app(world, settings=settings, **({"operator": "ada", "metrics": True} | more)), headers=headers
        )

    return make
