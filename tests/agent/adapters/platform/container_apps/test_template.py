"""A template comes back without loss, a stamp is taken off again, and a merge patch makes of it what was wanted."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.adapters.platform.container_apps.app_ref import AppRef, Environment, Seen
from agent.adapters.platform.container_apps.template import (
    bare,
    effect_of,
    merge_patch,
    parsed,
    stamped,
    tags_with,
    text_of,
    traffic_of,
    version_token,
    weights_of,
    without_nulls,
)
from agent.adapters.platform.traffic import parsed_traffic
from agent.core.service.serving import EFFECT_LABEL, Traffic
from agent.errors import InputRejected
from tests.contracts.arm_server import _merge

REF = AppRef(subscription="s", group="llm", name="gemma")
TEMPLATE = {
    "containers": [
        {"name": "vllm", "image": "i", "env": [{"name": "A", "value": "1"}]},
        {"name": "side", "image": "j"},
    ],
    "scale": {"minReplicas": 1, "maxReplicas": 1, "rules": None},
}


def seen(template=TEMPLATE, *, tags=None, status="Running", traffic=None, **properties):
    ingress = {"traffic": traffic} if traffic is not None else {}
    body = {
        "id": "/Subscriptions/s/A",
        "tags": tags or {},
        "systemData": {"createdAt": "2026-11-21T09:00:00Z"},
        "properties": {"template": template, "configuration": {"ingress": ingress}, "runningStatus": status}
        | properties,
    }
    return Seen(ref=REF, body=body, revisions=(), environment=Environment(id="e"))


VALUES = st.recursive(
    st.integers(0, 2) | st.text("ab", max_size=2) | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("xyz", max_size=1), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text("xyz", max_size=1), VALUES, max_size=3)


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_makes_what_was_wanted(now, wanted):
    """Whatever stood there before; a null and an absent member are the same, as they are to Azure."""
    merged = copy.deepcopy(now)
    _merge(merged, merge_patch(now, wanted))
    assert without_nulls(merged) == without_nulls(wanted)


def test_what_does_not_change_is_not_sent():
    """Arrays are sent whole; nothing at all where nothing changes."""
    other = copy.deepcopy(TEMPLATE)
    other["scale"]["minReplicas"] = 0
    assert merge_patch(TEMPLATE, other) == {"scale": {"minReplicas": 0}}
    assert merge_patch(TEMPLATE, TEMPLATE) == {}


def test_a_stamp_is_taken_off_again_and_an_older_one_is_replaced():
    """On every container, as they are all part of the revision."""
    once = stamped(TEMPLATE, REF, revision="gemma-sre-11111111", effect_key="1" * 64, incident="inc-1")
    twice = stamped(once, REF, revision="gemma-sre-22222222", effect_key="2" * 64, incident="inc-2")
    assert twice["revisionSuffix"] == "sre-22222222"
    assert [len(c["env"]) for c in twice["containers"]] == [3, 2]
    assert effect_of("gemma--sre-22222222", twice) == "2" * 64
    assert bare(text_of(seen(twice))) == bare(text_of(seen()))


def test_an_inherited_stamp_is_not_a_revisions_own():
    """A deployment by hand keeps the environment of the template before it, under a suffix of its own."""
    once = stamped(TEMPLATE, REF, revision="gemma-sre-11111111", effect_key="1" * 64, incident="inc-1")
    assert effect_of("gemma--by-hand", once) is None
    assert effect_of("gemma--sre-33333333", once) is None
    assert effect_of("gemma--sre-11111111", TEMPLATE) is None


def test_the_version_token_moves_with_what_a_change_rests_on_and_with_nothing_else():
    """A crash loop changes states all the time, and the stamp of a stop is a tag."""
    token = version_token(seen())
    assert version_token(seen(tags={EFFECT_LABEL: "k"})) == token
    assert version_token(seen(provisioningState="Failed", outboundIpAddresses=["1"])) == token
    other = copy.deepcopy(TEMPLATE)
    other["containers"][0]["image"] = "k"
    changed = [
        seen(other),
        seen(status="Stopped"),
        seen(traffic=[{"revisionName": "gemma--a", "weight": 100}]),
        seen(workloadProfileName="small"),
        seen(latestRevisionName="gemma--b"),
    ]
    assert len({version_token(s) for s in changed} | {token}) == 6


def test_traffic_names_revisions_as_we_do_and_comes_back():
    """Ours have one dash; what we did not name keeps its name, and the latest has none."""
    weights = [
        {"revisionName": "gemma--sre-1", "weight": 20, "label": "blue"},
        {"revisionName": "gemma--0000001", "weight": 30},
        {"latestRevision": True, "weight": 50},
    ]
    found = traffic_of(seen(traffic=weights))
    assert [t.revision for t in found] == ["gemma-sre-1", "gemma--0000001", None]
    assert weights_of(REF, found) == weights
    assert traffic_of(seen()) == (Traffic(percent=100),)


def test_tags_of_others_stay_and_ours_are_replaced():
    assert tags_with(seen(tags={"team": "llm", EFFECT_LABEL: "old"}), {EFFECT_LABEL: "new"}) == {
        "team": "llm",
        EFFECT_LABEL: "new",
    }
    assert tags_with(seen(tags={"team": "llm", EFFECT_LABEL: "old"}), {}) == {"team": "llm", EFFECT_LABEL: None}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"template": 1, "stopped": false}', "{", json.dumps(TEMPLATE)])
def test_a_text_that_is_no_template_is_refused(text):
    with pytest.raises(InputRejected, match="the template was not read"):
        parsed(text)


def test_a_text_that_is_no_traffic_is_refused():
    with pytest.raises(InputRejected, match="mistakes"):
        parsed_traffic('[{"weight": 100}]')
