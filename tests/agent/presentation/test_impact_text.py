"""Impact and durations in words: the present as long as it may be true, the past afterwards."""

from datetime import timedelta

from agent.core.incident.durations import Durations
from agent.core.incident.impact import Impact, Severity
from agent.core.incident.phase import Phase
from agent.core.service.serving import Serves
from agent.presentation import impact_text as words


def test_every_impact_and_severity_has_words():
    assert set(words.SEVERITY_WORDS) == set(Severity)
    assert set(words._IMPACTS) == set(words._IMPACTS_THEN) == set(Impact)


def test_the_older_revision_is_named_and_the_past_is_past(stage):
    incident = stage.open().with_(serves=Serves(at=stage.clock.now(), ready=False, older="gemma-00004"))
    assert words.impact_text(incident) == "an older revision serves (gemma-00004)"
    assert words.impact_text(incident.with_(phase=Phase.RESOLVED)) == "an older revision served (gemma-00004)"


def test_only_what_came_to_pass_is_listed():
    took = Durations(detect_s=4.2, recover_s=timedelta(minutes=14, seconds=9).total_seconds())
    assert [(line.label, line.says) for line in words.duration_lines(took)] == [
        ("Time to detect", "4 s"),
        ("Time to recover", "14 min"),
    ]
    assert words.duration_lines(Durations()) == ()


def test_a_span_has_two_units_at_most():
    assert [words.span(s) for s in (0.2, 59, 107, 120, 843, 3600, 3720, 90_000)] == [
        "1 s",
        "59 s",
        "1 min 47 s",
        "2 min",
        "14 min",
        "1 h",
        "1 h 2 min",
        "1 d 1 h",
    ]
