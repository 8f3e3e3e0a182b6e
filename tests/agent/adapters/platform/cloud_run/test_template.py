"""A template survives the trip to text and back, byte by byte, with what this client does not even know."""

import json
from pathlib import Path

import pytest
from google.cloud import run_v2
from google.protobuf import json_format

from agent.adapters.platform.cloud_run.template import (
    WIRE,
    bare,
    label_value,
    stamped,
    targets_of,
    template_of,
    text_of,
    traffic_of,
)
from agent.adapters.platform.traffic import parsed_traffic
from agent.core.service.serving import EFFECT_LABEL, Traffic
from agent.errors import InputRejected

SAMPLES = Path(__file__).parents[4] / "data" / "samples"
RECORDED = ("run_v2_service_gpu_l4.json", "run_v2_service_gpu_rtx6000.json", "run_v2_service_failed.json")


def recorded(name: str):
    return json_format.ParseDict(json.loads((SAMPLES / name).read_text()), run_v2.Service.pb(run_v2.Service()))


def template(**fields):
    return run_v2.RevisionTemplate.pb(run_v2.RevisionTemplate(**fields))


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_template_comes_back_byte_by_byte(name: str) -> None:
    """Describe to template, nothing changed: the same bytes on the wire and the same text."""
    before = recorded(name).template
    after = template_of(text_of(before))
    assert after.SerializeToString(deterministic=True) == before.SerializeToString(deterministic=True)
    assert text_of(after) == text_of(before)


def test_odd_words_come_back_byte_by_byte() -> None:
    """Quoted JSON, expansions, both forms of a flag, empty words and foreign signs stay as they are."""
    words = ["--limit-mm-per-prompt", '{"image":4}', "--port=$(PORT)", "--x", "", "$$(HOME)", "ünï\n\t\\"]
    before = template(containers=[run_v2.Container(args=words, command=["/bin/vllm"])], session_affinity=True)
    after = template_of(text_of(before))
    assert list(after.containers[0].args) == words
    assert after == before


def test_presence_of_a_false_value_survives() -> None:
    """An optional that was set to false is not the same as one that was never set."""
    said, unsaid = template(gpu_zonal_redundancy_disabled=False), template()
    assert template_of(text_of(said)).HasField("gpu_zonal_redundancy_disabled")
    assert not template_of(text_of(unsaid)).HasField("gpu_zonal_redundancy_disabled")


def test_fields_that_this_client_does_not_know_are_kept() -> None:
    """A field of a newer API rides along through text, stamp and back."""
    newer = bytes([0xAA, 0x3F, 3]) + b"new"  # field 1013, length-delimited
    before = type(template()).FromString(template(service_account="a").SerializeToString() + newer)
    text = text_of(before)
    assert WIRE in json.loads(text)
    assert template_of(text).SerializeToString(deterministic=True) == before.SerializeToString(deterministic=True)
    marked = stamped(before, revision="s-1", effect_key="k1", incident="i")
    assert newer in template_of(text_of(marked)).SerializeToString()
    assert bare(text_of(marked)) == text


def test_two_forms_that_differ_are_refused() -> None:
    """Text whose JSON was changed but not its bytes is nobody's template."""
    before = type(template()).FromString(template(service_account="a").SerializeToString() + bytes([0xAA, 0x3F, 0]))
    data = json.loads(text_of(before)) | {"serviceAccount": "b"}
    with pytest.raises(InputRejected, match="differ"):
        template_of(json.dumps(data))


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{", '{"no": 1}', '{"@wire": 3}', '{"@wire": "!"}', '{"timeout": 3}']
)
def test_what_is_no_template_is_refused(text: str) -> None:
    """Garbage is refused in our words."""
    with pytest.raises(InputRejected):
        template_of(text)


def test_a_stamp_replaces_the_one_before_and_leaves_foreign_labels() -> None:
    """Whoever looks finds one effect, and the owner's labels."""
    before = template(labels={"team": "llm", EFFECT_LABEL: "old"}, revision="s-0")
    after = stamped(before, revision="s-1", effect_key="k1", incident="Inc/É 7")
    assert after.labels["team"] == "llm"
    assert after.labels[EFFECT_LABEL] == "k1"
    assert after.revision == "s-1"
    assert before.labels[EFFECT_LABEL] == "old"
    assert bare(text_of(after)) == bare(text_of(before))


def test_label_values_are_what_cloud_run_takes() -> None:
    """Lower-case letters, digits, - and _, at most 63."""
    assert label_value("Inc/É 7") == "inc-é-7".replace("é", "-")
    assert len(label_value("x" * 100)) == 63


def test_traffic_survives_the_trip() -> None:
    """Latest, pinned shares and tags without a share."""
    traffic = (
        Traffic(percent=90),
        Traffic(revision="s-1", percent=10),
        Traffic(revision="s-2", tag="try"),
    )
    assert traffic_of(run_v2.TrafficTarget.pb(t) for t in targets_of(traffic)) == traffic
    with pytest.raises(InputRejected):
        parsed_traffic('[{"percent": 101}]')
