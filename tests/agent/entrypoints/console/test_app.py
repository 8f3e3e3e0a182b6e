"""Counts in Prometheus's text form, at the console's own address."""

from prometheus_client.parser import text_string_to_metric_families

from agent.core.decision.decision import Choice


def read(answer):
    """Every sample by name and labels, read by the library's own parser."""
    families = text_string_to_metric_families(answer.get_data(as_text=True))
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def incidents(found, **wanted):
    return sum(
        v for (name, labels), v in found.items() if name == "sre_incidents" and wanted.items() <= dict(labels).items()
    )


def test_incidents_are_counted_by_class_phase_and_run(stage, browser_of):
    stage.waiting("a")
    stage.waiting("b")
    stage.said(stage.waiting("c"), Choice.APPROVE)
    stage.waiting("d", run="replay-1")
    answer = browser_of(stage.world, queue_age_s=lambda: 1.25).get("/metrics")
    found = read(answer)
    assert answer.content_type == "text/plain; version=0.0.4; charset=utf-8"
    probe = {"class": "startup_probe_failed"}
    assert incidents(found, phase="ASKED", run="live", **probe) == 2
    assert incidents(found, phase="APPROVED", run="live", **probe) == 1
    assert incidents(found, phase="ASKED", run="replay", **probe) == 1
    assert found["sre_plans_waiting", ()] == 3
    assert found["sre_queue_age_seconds", ()] == 1.25


def test_what_the_bus_does_not_say_is_left_out(browser):
    assert "sre_queue_age_seconds" not in browser.get("/metrics").get_data(as_text=True)


def test_no_class_can_break_the_form(stage, browser, scenes):
    evil = 'x"} 1\nsre_plans_waiting 99\\'
    stage.waiting("a", diagnosis=scenes.probe_diagnosis(stage.clock.now(), class_=evil))
    found = read(browser.get("/metrics"))
    assert found["sre_plans_waiting", ()] == 1
    assert incidents(found, **{"class": "other"}) == 1
