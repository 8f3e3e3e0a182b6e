"""One account and its regions by the official SDK: each call named in a table, with its deadline, its errors ours."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from agent.adapters.aws.errors import translated
from agent.errors import ExtraMissing, SettingsRejected

READ_S: Final = 20.0
ATTEMPTS: Final = 3
"""Of one call that reads, within the SDK: it waits longer each time where it is throttled, and as long as the header
``x-amz-retry-after`` says, 5 s more at most (botocore/retries/standard.py of 1.44)."""

Json = dict[str, Any]


class Call(NamedTuple):
    """One operation that the agent calls.

    Attributes:
        changes: Whether it changes something; then it is sent once, and never again by the SDK.
        why: What does not work without it.
    """

    service: str
    operation: str
    changes: bool
    why: str

    @property
    def action(self) -> str:
        """As a policy names it."""
        return f"{self.service}:{''.join(part.title() for part in self.operation.split('_'))}"


CALLS: Final = {
    call.operation: call
    for call in (
        Call("ec2", "describe_instances", False, "the instance is not found"),
        Call("ec2", "describe_instance_types", False, "its memory and its price are not known"),
        Call("ec2", "create_tags", True, "a start or a stop leaves no stamp"),
        Call("ec2", "start_instances", True, "it cannot be started"),
        Call("ec2", "stop_instances", True, "it cannot be stopped"),
        Call("ec2", "modify_instance_attribute", True, "its type cannot be changed"),
        Call("ec2", "describe_instance_type_offerings", False, "it is not known whether its zone has a type"),
        Call("ec2", "describe_volumes", False, "what a stop leaves to pay for is not known"),
        Call("ec2", "get_console_output", False, "of a machine that does not answer, Xid errors are not read"),
        Call("ec2", "describe_instance_status", False, "EC2's own status checks are not known"),
        Call("logs", "describe_log_streams", False, "its log in CloudWatch is not found"),
        Call("logs", "get_log_events", False, "its log in CloudWatch is not read"),
        Call("ssm", "describe_instance_information", False, "it is not known whether its agent answers"),
        Call("ssm", "send_command", True, "nothing on it is read or changed"),
        Call("ssm", "get_command_invocation", False, "no answer of it is read"),
        Call("ssm", "list_command_invocations", False, "a stopped instance's configuration is not known"),
    )
}
"""Every operation; the policy document is made of them."""


def open_session(profile: str | None = None) -> Any:
    """Return a ``boto3.Session``, which signs in as the aws command line does.

    Args:
        profile: Of the AWS configuration; None takes the environment, the default profile or the machine's role.

    Raises:
        SettingsRejected: boto3 is not installed, or there is no such profile.
    """
    try:
        import boto3
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise ExtraMissing("EC2 cannot be reached", extra="aws", package="boto3") from error
    try:
        return boto3.Session(profile_name=profile)
    except BotoCoreError as error:
        raise SettingsRejected(
            "EC2 cannot be reached",
            why=str(error)[:500],
            hint="name a profile of ~/.aws/config in PLATFORM=ec2:PROFILE",
        ) from error


class Aws:
    """Calls AWS; every method raises our errors only.

    Args:
        session: Makes the session, at the first call, because the SDK is slow to import.
    """

    def __init__(self, session: Callable[[], Any] = open_session) -> None:
        self._open = session
        self._session: Any = None
        self._clients: dict[tuple[str, str, bool], Any] = {}

    def call(self, region: str, operation: str, **asked: Any) -> Json:
        """Call one operation of the table and return its answer."""
        return self._call(region, CALLS[operation], READ_S, asked)

    def change(self, region: str, operation: str, *, within_s: float, **asked: Any) -> Json:
        """Call one that changes something, once; the answer may take so long.

        Args:
            region: Where.
            operation: Which.
            within_s: Seconds for the answer, ``READ_S`` at most.
            asked: What it is called with.
        """
        return self._call(region, CALLS[operation], min(within_s, READ_S), asked)

    def _call(self, region: str, call: Call, within_s: float, asked: Json) -> Json:
        try:
            client = self._client(region, call, within_s)
            return dict(getattr(client, call.operation)(**asked))
        except Exception as error:
            raise translated(error, f"{call.action} in {region} failed") from error

    def _client(self, region: str, call: Call, within_s: float) -> Any:
        from botocore.config import Config

        known = self._clients.get((region, call.service, call.changes))
        if known is not None and within_s >= READ_S:
            return known
        if self._session is None:
            self._session = self._open()
        attempts = 1 if call.changes else ATTEMPTS
        config = Config(
            connect_timeout=min(within_s, 10),
            read_timeout=within_s,
            retries={"mode": "standard", "total_max_attempts": attempts},
        )
        made = self._session.client(call.service, region_name=region, config=config)
        if within_s >= READ_S:
            self._clients[region, call.service, call.changes] = made
        return made
