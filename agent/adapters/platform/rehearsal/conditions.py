"""The facts of a configuration that can decide whether it starts, and the tests a record makes on them."""

import re

from agent.core.service.container_args import flag_map, served_model
from agent.core.service.serving import Probe, ServingConfig

Test = str | tuple[str, ...]  # "= 8192", ">= 790", "!= x", "absent", "present", "any"; of several one must hold

_TEST = re.compile(r"^(=|!=|>=|<=|>|<)\s+(.+)$")


def facts(config: ServingConfig) -> dict[str, str]:
    """Return the facts by name: flags, environment, probes by their whole budget, resources, volumes, the model."""
    found = {f"flag {name}": _plain(value) for name, value in flag_map(config.args).items() if name != "model"}
    found["model"] = served_model(config.command, config.args) or ""
    found["image"] = config.image
    found |= {f"env {e.name}": e.value if e.value is not None else f"secret {e.secret}" for e in config.env}
    found |= {f"volume {v.name} options": " ".join(sorted(v.options)) for v in config.volumes}
    found |= _probe("startup_probe", config.startup_probe or Probe())
    if config.liveness_probe is not None:
        found |= _probe("liveness_probe", config.liveness_probe)
    plain = (
        "cpu",
        "memory_mib",
        "accelerator",
        "accelerator_count",
        "min_instances",
        "max_instances",
        "concurrency",
        "request_timeout_s",
    )
    found |= {name: _plain(str(getattr(config, name))) for name in plain if getattr(config, name) is not None}
    return found


def _probe(name: str, probe: Probe) -> dict[str, str]:
    said = {"kind": probe.kind, "path": probe.path, "port": probe.port, "budget_s": probe.budget_s}
    return {f"{name} {key}": str(value) for key, value in said.items() if value is not None}


def _plain(value: str) -> str:
    """Numbers are equal however they are written."""
    number = _number(value)
    return f"{number:g}" if number is not None and abs(number) < 1e6 else value


def _number(word: str | None) -> float | None:
    try:
        return float(word) if word is not None else None
    except ValueError:
        return None


def holds(test: Test, value: str | None) -> bool:
    """Whether a fact passes a test; None means that the fact is absent."""
    if not isinstance(test, str):
        return any(holds(one, value) for one in test)
    if test in {"absent", "present", "any"}:
        return test == "any" or (value is None) == (test == "absent")
    found = _TEST.match(test)
    assert found is not None, f"{test!r} is no test; scenarios are checked when they are read"
    sign, wanted = found[1], found[2].strip()
    if value is None:
        return sign == "!="
    if sign in {"=", "!="}:
        return (_plain(value) == _plain(wanted)) == (sign == "=")
    left, right = _number(value), _number(wanted)
    if left is None or right is None:
        return False
    return {">=": left >= right, "<=": left <= right, ">": left > right, "<": left < right}[sign]


def mistaken(test: Test) -> bool:
    """Whether a test is none that :func:`holds` understands."""
    if not isinstance(test, str):
        return any(mistaken(one) for one in test)
    return test not in {"absent", "present", "any"} and _TEST.match(test) is None
