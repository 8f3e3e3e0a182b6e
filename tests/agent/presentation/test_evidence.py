"""A figure names the line it was read from, in the words of the platform it ran on."""

import pytest

from agent.presentation.evidence import field_source, place_of


@pytest.mark.parametrize(
    ("platform", "place"),
    [
        ("host", "line 14 of the server's log"),
        ("cloud_run", "line 14 of the instance's log"),
        ("kubernetes", "line 14 of the container's log"),
    ],
)
def test_a_host_has_no_container_and_no_instance(platform, place):
    assert place_of("log:14", platform) == place
    assert place_of("s3", platform) == "signal s3"


def test_a_line_behind_a_part_that_nobody_counted_is_named_from_the_end():
    assert place_of("log:-3", "host") == "line 3 from the end of the server's log"
    assert place_of("log", "host") == "the server's log"


def test_a_figure_without_a_known_line_claims_none(stage, scenes):
    diagnosis = scenes.probe_diagnosis(stage.clock.now(), field_signals={"load_seconds": "log:14"})
    assert field_source(diagnosis, "load_seconds", "cloud_run") == "line 14 of the instance's log"
    assert field_source(diagnosis, "compile_seconds", "cloud_run") == ""
