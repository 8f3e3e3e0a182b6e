"""Tools that record a request: what a person then decides elsewhere; nothing here changes a service."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from mcp.server.mcpserver import Context
from pydantic import Field

from agent.entrypoints.mcp.tools.incident_tools import PlanShown, shown_plan
from agent.entrypoints.mcp.tools.result import Result
from agent.errors import InputRejected

if TYPE_CHECKING:
    from agent.core.change.asked_settings import ShapeOf, TypeOf
    from agent.core.incident.incident import Incident
    from agent.core.plan.action import Action
    from agent.entrypoints.operator_client.protocol import OperatorChange, OperatorClient
    from agent.stages.preview_change import ChangePreview

ServiceName = Annotated[str, Field(max_length=63, description="as list_services gives it")]
Why = Annotated[str, Field(min_length=1, max_length=1000, description="the reason; whoever approves reads it")]
Words = Annotated[list[str], Field(max_length=16)]

_CLIENT: Final = re.compile(r"[^A-Za-z0-9._-]+")


class Refused(Result):
    """What is not done here, and the command that does it."""

    refused: str
    command: str


class Proposed(Result):
    """A request that was recorded, or with ``dry_run`` only worked out. A person decides it, never this client.

    Attributes:
        request: Its id, for show_incident; None of a dry run.
        may_approve: Whom the policy lets decide, without who asks.
    """

    request: str | None
    status: str
    plan: PlanShown | None
    may_approve: list[str]
    decide_url: str | None
    note: str


class ProposalTools:
    """The tools that propose.

    Args:
        client: Opens the operator's client; called per question.
        preview: Works a change out with the operator's own credentials and stores nothing.
        shape_of: Finds the usual CPU and memory of an accelerator for a service.
        type_of: Finds what a type of machine has for a service.
        create: Makes the creation of a service that services.toml names.
        resumes_with: Returns the instances that a stopped service had, as MIN:MAX, or nothing.
        bearer: Returns who calls, as their token proves it; None where nobody signs in.
        decide_url: Where a person decides; None where it is the console of this machine.
        redact: Takes secrets out of a text.
        local: Whether the asker is named by this process and not by a token.
    """

    def __init__(
        self,
        client: "Callable[[], OperatorClient]",
        *,
        preview: "Callable[[OperatorChange], ChangePreview]",
        shape_of: "Callable[[str], ShapeOf]",
        type_of: "Callable[[str], TypeOf]",
        create: "Callable[[str], Action]",
        resumes_with: Callable[[str], str],
        bearer: Callable[[], str | None],
        decide_url: Callable[[], str | None],
        redact: Callable[[str], str],
        local: Callable[[], bool],
    ) -> None:
        self._client, self._preview, self._shape_of, self._type_of = client, preview, shape_of, type_of
        self._create, self._resumes_with, self._bearer = create, resumes_with, bearer
        self._decide_url, self._redact, self._local = decide_url, redact, local

    def save_secret(
        self, name: Annotated[str, Field(max_length=63, pattern=r"^[A-Za-z][A-Za-z0-9_-]*$", description="its name")]
    ) -> Refused:
        """Say how to store a secret; a secret is never taken in a conversation."""
        command = f'printf %s "$TOKEN" | gcloud secrets create {name} --data-file=- --replication-policy=automatic'
        return Refused(refused="a secret is not taken here: do not paste it into a conversation", command=command)

    def propose_change(
        self,
        service: ServiceName,
        why: Why,
        context: Context,
        *,
        set_flag: Words = [],  # noqa: B006 - the SDK copies defaults
        unset_flag: Words = [],  # noqa: B006
        set_env: Words = [],  # noqa: B006
        scale: Annotated[str, Field(max_length=20, description="MIN:MAX instances")] = "",
        concurrency: Annotated[str, Field(max_length=6, description="requests of one instance at once")] = "",
        resources: Annotated[str, Field(max_length=20, description="CPU:MEMORY, such as 8:32Gi")] = "",
        grace: Annotated[str, Field(max_length=6, description="seconds to finish when it is asked to end")] = "",
        model: Annotated[str, Field(max_length=200)] = "",
        accelerator: Annotated[str, Field(max_length=80)] = "",
        instance_type: Annotated[str, Field(max_length=40, description="EC2: another type of its machine")] = "",
        restart: bool = False,
        supersede: Annotated[bool, Field(description="take the place of a plan nobody approved yet")] = False,
        dry_run: Annotated[bool, Field(description="work it out and store nothing")] = False,
    ) -> Proposed:
        """Propose a change of a service; a person approves or rejects it elsewhere. Flags are NAME=VALUE."""
        from agent.core.change.asked_settings import AskedSettings, actions_of

        words = AskedSettings(
            set_flag=tuple(set_flag),
            unset_flag=tuple(unset_flag),
            set_env=tuple(set_env),
            scale=scale,
            concurrency=concurrency,
            resources=resources,
            grace=grace,
            model=model,
            accelerator=accelerator,
            instance_type=instance_type,
            restart=restart,
        )
        actions = actions_of(words, shape_of=self._shape_of(service), type_of=self._type_of(service))
        return self._propose(service, why, actions, context, supersede=supersede, dry_run=dry_run)

    def propose_lifecycle(
        self,
        service: ServiceName,
        operation: Literal["create", "start", "stop", "delete"],
        why: Why,
        context: Context,
        *,
        scale: Annotated[str, Field(max_length=20, description="MIN:MAX instances, of a start; else as before")] = "",
        confirm: Annotated[str, Field(max_length=63, description="the service's name again, for a deletion")] = "",
        dry_run: Annotated[bool, Field(description="work it out and store nothing")] = False,
    ) -> Proposed:
        """Propose to create, start, stop or delete one named service; a person approves or rejects it elsewhere."""
        from agent.core.change.asked_settings import AskedSettings, actions_of

        if operation == "create":
            if scale or confirm:
                why = "services.toml says how many instances a new service has, and a creation needs no confirmation"
                raise InputRejected("nothing was proposed", why=why, hint="leave scale and confirm out")
            actions: tuple[Action, ...] = (self._create(service),)
        else:
            scale = scale or (self._resumes_with(service) if operation == "start" else "")
            actions = actions_of(AskedSettings(lifecycle=operation, scale=scale, confirmed=confirm))
        return self._propose(service, why, actions, context, dry_run=dry_run)

    def _propose(
        self,
        service: str,
        why: str,
        actions: "tuple[Action, ...]",
        context: Any,
        *,
        supersede: bool = False,
        dry_run: bool,
    ) -> Proposed:
        from agent.core.decision.decision import Channel
        from agent.entrypoints.operator_client.protocol import OperatorChange

        asked = OperatorChange(service=service, actions=actions, why=why, supersede=supersede, channel=Channel.MCP)
        if self._local():
            person = self._bearer()
            asked = asked.with_(by=person or f"mcp:{client_name(context)}", verified=person is not None)
        preview = self._preview(asked)
        approvers = list(preview.approvers)
        if dry_run:
            plan = shown_plan(preview.plan, redact=self._redact)
            return self._proposed(None, "dry run: nothing was stored", plan, approvers)
        life = self._client().ask(asked.with_(target=preview.plan.target))
        plan = shown_plan(life.plan if life.plan is not None else preview.plan, redact=self._redact)
        return self._proposed(life, f"recorded; it is {life.phase.value}", plan, approvers)

    def _proposed(self, life: "Incident | None", status: str, plan: PlanShown, approvers: list[str]) -> Proposed:
        note = "nothing was changed; a person decides. Look at it again with show_incident"
        if life is not None and life.plan is None:
            note += "; the plan shown is a preview, the plan to decide about is made by the running service"
        return Proposed(
            request=life.id if life is not None else None,
            status=status,
            plan=plan,
            may_approve=approvers,
            decide_url=self._decide_url(),
            note=note,
        )


def client_name(context: Any) -> str:
    """Return what the client calls itself, in plain letters; nothing rests on it but a name."""
    session_params = context.session.client_params
    name = session_params.client_info.name if session_params is not None else ""
    return _CLIENT.sub("-", name)[:60].strip("-") or "client"
