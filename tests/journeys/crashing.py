"""A function that is killed at chosen points: before or after an effect, each point once, as the test's plan says.

Loaded by functions-framework in place of a function's own file; the production code knows nothing of it.
"""

import dataclasses
import importlib
import json
import os
import signal
import sys
from functools import cache
from pathlib import Path

from agent.core.decision.decision import Person
from agent.entrypoints import function_app
from tests.port_effects import effects


class Killing:
    """A port whose effects end the process where the plan says so."""

    def __init__(self, port, thing, points):
        self._port, self._thing, self._points = port, thing, points

    def __getattr__(self, name):
        found = getattr(self._thing, name)
        label = f"{self._port}.{name}"
        if label not in effects():
            return found

        def call(*args, **more):
            self._points.reach(label, "before")
            result = found(*args, **more)
            self._points.reach(label, "after")
            return result

        return call


class Points:
    """The plan of one function: where it is killed, and what was done already."""

    def __init__(self, function, plan, done):
        self._function, self._plan, self._done = function, plan, done

    def reach(self, label, when):
        point = f"{self._function} {when} {label}"
        if point not in self._plan:
            return
        try:
            os.close(os.open(self._done / point, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


def killing(app, points):
    """Return an app whose every effect is a point of the plan."""

    def platform_of(service):
        platform = app.environment.platform_of(service)
        return platform and Killing("platform", platform, points)

    names = ("store", "control", "bus", "cards", "quarantine")
    ports = {name: Killing(name, getattr(app, name), points) for name in names}
    return dataclasses.replace(app, environment=dataclasses.replace(app.environment, platform_of=platform_of), **ports)


def points_of(function):
    """Return where CRASH_PLAN kills this process; points that were reached once are files beside it."""
    plan = Path(os.environ["CRASH_PLAN"])
    return Points(function, frozenset(json.loads(plan.read_text())), plan.parent)


def arm(function):
    """Let a function of this process be killed as the plan says."""
    points = points_of(function)
    real = function_app._app
    function_app._app = cache(lambda role: killing(real(role), points))


def decide(plan):
    """Approve a plan in this process, as `decide` does."""
    from agent.app import Role
    from agent.core.decision.decision import Channel, Choice
    from agent.ports.stage_context import Owner
    from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision

    word = DecisionRequest(
        plan=plan, answer=Choice.APPROVE, by=Person(who="ada", channel=Channel.COMMAND_LINE, verified=False)
    )
    plan_to_decision(function_app.app_of(Role.DECIDE).contexts[Owner.DECIDE], word)


def watch(words):
    """Run the watch command in this process."""
    from agent import app
    from agent.entrypoints.cli.main import main

    points, real = points_of("watch"), app.build_app
    app.build_app = lambda settings: killing(real(settings), points)
    return main(words)


if "CRASH_PLAN" in os.environ:
    name = os.environ["CRASH_FUNCTION"]
    if name == "watch":
        sys.exit(watch(sys.argv[1:]))
    arm(name)
    if name == "decide":
        decide(sys.argv[1])
    else:
        frame = importlib.import_module(f"functions.{name}")
        globals()[name] = getattr(frame, name)
