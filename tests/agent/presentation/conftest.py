"""Incidents in every state, from the scenes of the console's tests."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCENES = Path(__file__).resolve().parents[1] / "entrypoints" / "web" / "scenes.py"


def _scenes():
    spec = importlib.util.spec_from_file_location("presentation_scenes", SCENES)
    module = importlib.util.module_from_spec(spec)
    sys.modules["presentation_scenes"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def scenes():
    return _scenes()


@pytest.fixture
def stage(scenes):
    return scenes.a_stage()
