"""The report is a download; nothing of it runs under the console's address."""

import json

import pytest


@pytest.mark.parametrize("form", ["md", "json", "html"])
def test_each_form_is_a_download_that_the_page_links_to(stage, browser, form):
    asked = stage.waiting("s-report")
    path = f"/incidents/{asked.id}/report.{form}"
    page = browser.get(f"/incidents/{asked.id}").get_data(as_text=True)
    assert page.rindex("</details>") < page.index(f'href="{path}"')  # in sight, not folded away
    response = browser.get(path)
    assert response.status_code == 200
    assert response.headers["Content-Disposition"] == f'attachment; filename="incident-{asked.id}.{form}"'
    assert "script-src" not in response.headers["Content-Security-Policy"]
    assert asked.service in response.get_data(as_text=True)


def test_the_json_is_that_of_the_command_line(stage, browser):
    asked = stage.waiting("s-json")
    assert json.loads(browser.get(f"/incidents/{asked.id}/report.json").data)["incident"] == asked.id


@pytest.mark.parametrize("path", ["/incidents/inc-nope/report.md", "/incidents/inc-nope/report.pdf"])
def test_what_is_not_there_is_not_found(browser, path):
    assert browser.get(path).status_code == 404
