"""What a platform tells of its work; a service that is gone or closed to us tells nothing, for good or bad."""

from agent.errors import InputRejected, PolicyRefused
from agent.ports.platform import Operation, Platform


def poll_operation(platform: Platform, operation: str) -> Operation:
    """Return how far an operation has come; not done and unknown where the platform will not say.

    Raises:
        DependencyFailed: The platform did not answer; ask again.
    """
    try:
        return platform.operation(operation)
    except (InputRejected, PolicyRefused) as error:
        return Operation(name=operation, done=False, ok=None, says=str(error))
