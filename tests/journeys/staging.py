"""A rehearsal in which a second revision can come up beside the first: the change is staged, then gets the traffic."""

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "examples" / "gemma4-26b-l4-context-refused"
SERVICE = "gemma4-26b-qat-l4"
OUTCOME = """
[[outcome]]
name = "longer"
result = "{result}"
after_s = 788
when = {{ "flag max-model-len" = "= 17408" }}
source = "made for the tests: it was never started"
basis = "derived"
message = "the container did not start"
measured = [
  {{ check = "completion", good = {good}, says = "{says}" }},
  {{ check = "speed", value = 61.67, first_token_s = 0.124, says = "as fast as before" }},
]
"""


def staged_example(folder: Path, *, result: str = "came_up", good: bool = True) -> Path:
    """Copy the example with an accelerator to spare, and an outcome for the change that it leads to.

    Args:
        folder: Where to.
        result: ``came_up`` or ``failed``.
        good: Whether the new revision answers.
    """
    copy = folder / "staged"
    shutil.copytree(SOURCE, copy)
    scenario = copy / "scenario.toml"
    text = scenario.read_text().replace("spare_accelerator = false", "spare_accelerator = true")
    scenario.write_text(
        text
        + OUTCOME.format(result=result, good=str(good).lower(), says="answered" if good else "the answer was empty")
    )
    return copy
