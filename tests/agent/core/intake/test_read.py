"""Every documented payload becomes the signal that is written down for it, or the refusal."""

import json
from pathlib import Path

import pytest

from agent.core.intake.origin import IgnoredBecause, Reading
from agent.core.intake.read import BODY_LIMIT, SHAPES, signals_from
from agent.entrypoints.http.ingest import SHAPES_OF
from agent.entrypoints.pubsub.delivery import delivery_from
from agent.errors import InputRejected

DATA = Path(__file__).resolve().parents[3] / "data"
EXPECTED = json.loads((DATA / "samples_expected.json").read_text())
INDEX = json.loads((DATA / "samples" / "INDEX.json").read_text())


def seen(taken):
    """Return what a body became, in the words of samples_expected.json."""
    if taken.ignored:
        return {"ignored": taken.ignored[0].because}
    said = taken.signals[0].model_dump(mode="json")
    return {"shape": taken.shape} | {key: value for key, value in said.items() if key not in {"key", "run"}}


def test_every_sample_of_the_index_has_its_expected_result():
    """A new payload fails here until somebody writes down what it should become."""
    assert set(EXPECTED) == {Path(name).stem for name in INDEX}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_documented_payload_becomes_what_is_written_down(name):
    """Source, service, revision, instance, time, words and facts; or why it is none."""
    expected = dict(EXPECTED[name])
    body = (DATA / "samples" / f"{name}.json").read_bytes()
    if pushed := expected.get("push"):
        request = json.loads(body)
        recorded = "headers" in request
        raw = json.dumps(request["body"]).encode() if recorded else body
        assert signals_from(delivery_from(request["headers"] if recorded else {}, raw).data, Reading()) == signals_from(
            (DATA / "samples" / f"{pushed}.json").read_bytes(), Reading()
        )
        expected = {
            "refused": "it is a recorded HTTP request" if recorded else "it is a Pub/Sub envelope, not its message"
        }
    if why := expected.get("refused"):
        with pytest.raises(InputRejected) as refused:
            signals_from(body, Reading())
        assert refused.value.why == why
        assert refused.value.hint
        return
    found = seen(signals_from(body, Reading()))
    if text := expected.pop("text", None):
        assert found.pop("text").startswith(text)
    fields = expected.pop("fields", {})
    assert fields.items() <= found.pop("fields", {}).items()
    assert {key: value for key, value in found.items() if value is not None} == {
        key: value for key, value in expected.items() if value is not None
    }


def test_an_unknown_shape_is_refused_with_the_shapes_that_are_known():
    """The refusal names the keys it saw and what could be sent instead."""
    with pytest.raises(InputRejected) as refused:
        signals_from(b'{"hello":1}', Reading())
    assert str(refused.value) == (
        "the body became no signal: its shape is unknown, its keys are ['hello']. Hint: send one of: "
        + ", ".join(name for name, _, _ in SHAPES)
    )


def test_a_body_over_the_limit_is_refused_unread():
    """One byte over 1 MiB is refused whatever it says."""
    with pytest.raises(InputRejected, match="at most 1048576 are taken"):
        signals_from(b" " * (BODY_LIMIT + 1), Reading())


def test_the_run_is_part_of_every_key():
    """The same body in a replay is another observation; in the same run it is the same."""
    body = (DATA / "samples" / "alertmanager_webhook_v4.json").read_bytes()
    live, again, replayed = (signals_from(body, Reading(run=run)).signals[0] for run in ("live", "live", "r1"))
    assert live.key == again.key
    assert live.key != replayed.key
    assert replayed.run == "r1"


def test_the_guide_names_every_shape_reason_and_sender():
    """docs/intake.md is what a refused operator is pointed to."""
    guide = (DATA.parents[1] / "docs" / "intake.md").read_text()
    named = [*(name for name, _, _ in SHAPES), *IgnoredBecause, *SHAPES_OF]
    assert [word for word in named if f"`{word}`" not in guide] == []
