"""The texts that the sink filter names: complete, harmless, the same for any order of the catalogue."""

import random

import pytest

from agent.catalogue.load_bundled import load_healthy
from agent.catalogue.load_failures import load_failures
from agent.core.intake.sink_filter import ALARMS, HARMLESS, NEEDED, anchors, anchors_of, sink_filters
from agent.core.service.services import parse_services
from agent.errors import SettingsRejected
from agent.failures.signature import WILDCARD

SIGNATURES = load_failures().signatures


@pytest.mark.slow
def test_every_phrase_of_the_catalogue_is_heard():
    """In each phrase of a cause or consequence stands an alarm word or a named text, but for lines of health."""
    named = anchors_of(SIGNATURES, load_healthy())
    healthy = "\n".join(load_healthy()).lower()
    deaf = []
    for signature in SIGNATURES:
        if signature.role in NEEDED:
            for phrase in (p.lower() for p in signature.phrases):
                parts = phrase.split(WILDCARD)
                heard = any(text in part for text in (*ALARMS, *named) for part in parts) or phrase in named
                if not heard and phrase not in healthy:
                    deaf.append(phrase)
    assert deaf == []


@pytest.mark.slow
def test_no_named_text_stands_in_a_healthy_line_or_a_harmless_phrase():
    """Only a phrase that is harmless elsewhere, word for word, may be named all the same."""
    needed = {p.lower() for s in SIGNATURES if s.role in NEEDED for p in s.phrases}
    harmless = "\n".join(p.lower() for s in SIGNATURES if s.role in HARMLESS for p in s.phrases)
    named = anchors_of(SIGNATURES, load_healthy())
    lines = "\n".join(load_healthy()).lower()
    assert [text for text in named if text in lines] == []
    assert [text for text in named if text in harmless and text not in needed] == []


@pytest.mark.slow
def test_the_order_of_the_catalogue_does_not_matter():
    """The same texts come out, so that the deployed filter changes only when knowledge does."""
    shuffled = list(SIGNATURES)
    random.Random(7).shuffle(shuffled)
    assert anchors_of(shuffled, load_healthy()) == anchors_of(SIGNATURES, load_healthy())


def test_one_text_serves_many_phrases_and_a_harmless_one_serves_none():
    """The cover is short, and words of health are not in it."""
    needed = ["the device was lost at once", "the device was lost again", "request was served slowly"]
    assert anchors(needed, ["request was served"]) == ("device was", "served slowly")


def test_a_text_that_later_ones_make_spare_is_not_named():
    """The filter has a limit: each of its texts is there for a phrase that no other text serves."""
    needed = ["was lost of heartbeats", "was lost of ownerships", "heartbeats", "ownerships"]
    assert anchors(needed, []) == ("heartbeats", "ownerships")


def test_a_phrase_that_is_harmless_word_for_word_is_named_whole():
    """To hear too much is better than to be deaf."""
    assert anchors(["nothing else here"], ["nothing else here and there"]) == ("nothing else here",)


@pytest.mark.parametrize("platform", ["container_apps", "ec2"])
def test_a_sink_that_would_select_nothing_is_refused(platform):
    """An empty selection is an error that is said, never a filter that matches all or nothing."""
    entry = {"name": "v", "platform": platform, "model": "m", "accelerator": "nvidia-l4", "owner": "console"}
    with pytest.raises(SettingsRejected, match="no sink filter was made"):
        sink_filters(parse_services({"service": [entry]}), SIGNATURES, load_healthy())


def test_a_filter_that_is_too_long_is_refused():
    """The language's limit is known before anything is deployed."""
    entries = [
        {
            "name": f"{'n' * 55}-{i}",
            "platform": "kubernetes",
            "model": "m",
            "accelerator": "nvidia-l4",
            "owner": "console",
        }
        for i in range(60)
    ]
    with pytest.raises(SettingsRejected, match="20000"):
        sink_filters(parse_services({"service": entries}), SIGNATURES, load_healthy())
