"""Google's REST APIs are read with the caller's token, page by page, and every refusal has a type."""

import pytest

from agent.adapters.google.bucket import folders_of
from agent.adapters.google.rest import MOST_PAGES, GoogleRest
from agent.errors import DependencyFailed, InputRejected, PolicyRefused
from tests.contracts import google_rest


@pytest.fixture
def apis():
    server = google_rest.GoogleRest()
    yield server
    server.close()


def test_a_list_is_read_to_its_last_page_with_one_token(apis):
    apis.answers["/v2/x"] = [{"rows": [{"n": 1}, "no object"]}, {}, {"rows": [{"n": 2}]}]
    asked = []
    rest = GoogleRest(lambda: asked.append(1) or "ya29.mine", at=apis.at)
    assert [row["n"] for row in rest.rows("tpu", "/v2/x", "rows", {"pageSize": "9"})] == [1, 2]
    assert asked == [1]
    assert [query.get("pageToken") for _, _, query, _ in apis.seen] == [None, "1", "2"]
    assert {query["pageSize"] for _, _, query, _ in apis.seen} == {"9"}
    assert {headers["Authorization"] for *_, headers in apis.seen} == {"Bearer ya29.mine"}


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        ((403, "Permission 'cloudquotas.quotas.get' denied"), PolicyRefused, "cloudquotas.quotas.get"),
        ((401, "no credentials"), PolicyRefused, "no credentials"),
        ((404, "no such project"), InputRejected, "no such project"),
        ((500, "oops"), DependencyFailed, "oops"),
        (b"<html>", DependencyFailed, "without JSON"),
        (b"[1]", DependencyFailed, "without JSON"),
        (b'{"a": 1, "a": 2}', DependencyFailed, "without JSON"),
    ],
    ids=["denied", "nobody", "missing", "broken", "a page", "no object", "twice the same key"],
)
def test_a_refusal_has_a_type_and_its_reason(apis, answer, kind, says):
    apis.answers["/v1/x"] = answer
    with pytest.raises(kind, match=r"cloudquotas\.googleapis\.com was not read") as told:
        GoogleRest(lambda: None, at=apis.at).get("cloudquotas", "/v1/x")
    assert says in str(told.value)
    assert "Authorization" not in apis.seen[0][3]


def test_nobody_answers():
    with pytest.raises(DependencyFailed):
        GoogleRest(lambda: None, at=lambda _: "http://127.0.0.1:9").get("tpu", "/v2/x")


def test_an_endless_list_is_refused_and_not_cut(apis):
    apis.answers["/v2/x"] = [{"rows": []}] * (MOST_PAGES + 1)
    with pytest.raises(DependencyFailed, match="pages"):
        list(GoogleRest(lambda: None, at=apis.at).rows("tpu", "/v2/x", "rows"))


def test_the_folders_of_a_bucket_are_those_one_level_below(apis):
    """https://cloud.google.com/storage/docs/json_api/v1/objects/list: prefixes end with the delimiter."""
    apis.answers["/storage/v1/b/models/o"] = [
        {"prefixes": ["llm/gemma/"], "items": [{"name": "llm/readme"}]},
        {"prefixes": ["llm/llama/"], "items": [{"name": "llm/config.json"}]},
    ]
    found = folders_of(GoogleRest(lambda: None, at=apis.at), "models", "llm")
    assert found == ("gs://models/llm", "gs://models/llm/gemma", "gs://models/llm/llama")
    assert apis.seen[0][2]["prefix"] == "llm/"
