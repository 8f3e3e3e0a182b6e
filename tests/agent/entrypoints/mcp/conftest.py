"""What stands beside the tests: an installation on a real file, with one incident that waits for a decision."""

from tests.agent.entrypoints.waiting_plan import asked

__all__ = ["asked"]
