"""Counts in Prometheus's text form."""

import re

from agent.core.decision.decision import Choice

LINE = re.compile(r'^[a-z_]+(\{([a-z_]+="(\\.|[^"\\\n])*",?)+\})? -?[0-9.]+$')


def test_incidents_are_counted_by_class_phase_and_run(stage, browser_of):
    stage.waiting("a")
    stage.waiting("b")
    stage.said(stage.waiting("c"), Choice.APPROVE)
    stage.waiting("d", run="replay-1")
    answer = browser_of(stage.world, queue_age_s=lambda: 1.25).get("/metrics")
    said = answer.get_data(as_text=True)
    assert answer.content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert 'sre_incidents{phase="ASKED",class="startup_probe_failed",run="live"} 2\n' in said
    assert 'sre_incidents{phase="APPROVED",class="startup_probe_failed",run="live"} 1\n' in said
    assert 'sre_incidents{phase="ASKED",class="startup_probe_failed",run="replay"} 1\n' in said
    assert "sre_plans_waiting 3\n" in said
    assert "sre_queue_age_seconds 1.250\n" in said


def test_what_the_bus_does_not_say_is_left_out(browser):
    assert "queue_age" not in browser.get("/metrics").get_data(as_text=True)


def test_no_class_can_break_the_form(stage, browser, scenes):
    evil = 'x"} 1\nsre_plans_waiting 99\\'
    stage.waiting("a", diagnosis=scenes.probe_diagnosis(stage.clock.now(), class_=evil))
    lines = browser.get("/metrics").get_data(as_text=True).splitlines()
    assert all(line.startswith("#") or LINE.match(line) for line in lines)
    assert "sre_plans_waiting 1" in lines
