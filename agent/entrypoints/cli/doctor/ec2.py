"""What stands between the agent and its units on EC2: instance, Systems Manager, unit, rights; nothing is changed."""

from collections.abc import Iterator

from agent.core.service.services import Services
from agent.entrypoints.cli.doctor.finding import Finding, bad, good, unknown
from agent.errors import DependencyFailed, SreError
from agent.settings import Settings


def ec2_units(settings: Settings, services: Services | None) -> Iterator[Finding]:
    """Look at each watched unit with the credentials of whoever runs the doctor.

    Raises:
        SreError: No unit is watched.
    """
    if settings.platform.partition(":")[0] != "ec2" or services is None:
        return
    from agent.app.ec2_environment import (
        failed_checks,
        log_says,
        missing_rights,
        open_ec2,
        unit_says,
        why_not_stopped,
    )

    opened = open_ec2(settings, services)
    for name in sorted(opened.names):
        try:
            yield good(f"ec2:{name}", unit_says(opened, name))
            failed = failed_checks(opened, name)
            if failed:
                yield bad(
                    f"ec2:status:{name}", failed, "look at the instance in the EC2 console: stop and start moves it"
                )
            yield good(f"ec2:log:{name}", log_says(opened, name))
            why = why_not_stopped(opened, name)
            if why:
                yield bad(f"ec2:stop:{name}", f"a stop would be refused: {why}", "see docs/ec2.md, 'Start and stop'")
            missing = missing_rights(opened, name)
            for call in missing:
                says = f"not allowed: {call.action}: {call.why}"
                yield bad(f"ec2:rights:{name}", says, "see docs/ec2.md, 'Rights'")
            if not missing:
                yield good(f"ec2:rights:{name}", "its instance may be started, stopped and stamped")
        except DependencyFailed as error:
            yield unknown(f"ec2:{name}", error.cause, error.hint)
        except SreError as error:
            yield bad(f"ec2:{name}", error.cause, error.hint)
