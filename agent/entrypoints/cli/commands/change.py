"""The change command: ask for a change of a service; it is proved, approved, applied and verified like any other."""

import argparse
from typing import TYPE_CHECKING

from agent.core.change.asked_settings import AskedSettings, actions_of
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.entrypoints.cli.output import for_people, for_programs, without_secrets
from agent.errors import InputRejected, PolicyRefused, SreError

if TYPE_CHECKING:
    from agent.core.change.asked_settings import ShapeOf
    from agent.core.plan.action import Action, SetInstanceType
    from agent.core.service.serving import Target
    from agent.entrypoints.operator_client.protocol import OperatorChange, OperatorClient
    from agent.presentation.policy_explanation import Row
    from agent.stages.preview_change import ChangePreview

WAIT_S = 10.0  # for the plan of a request that was recorded
REPEATED = (
    ("--set-flag", "NAME[=VALUE]", "set a vLLM flag; without a value, turn a switch on"),
    ("--unset-flag", "NAME", "remove a vLLM flag"),
    ("--set-env", "NAME=VALUE", "set an environment variable that policy.toml lists"),
    ("--scale", "MIN:MAX", "minimum and maximum number of instances"),
    ("--concurrency", "N", "concurrent requests per instance"),
    ("--resources", "CPU:MEMORY", "CPUs and memory of an instance, such as 8:32Gi"),
    ("--grace", "SECONDS", "termination grace period: time to finish open requests (Kubernetes)"),
    ("--model", "M", "serve another checkpoint that policy.toml lists"),
    ("--accelerator", "A", "move to another accelerator, such as nvidia-l4"),
    ("--instance-type", "T", "change the instance type, such as g6.2xlarge; the instance is stopped meanwhile (EC2)"),
)
WHOLE = (
    ("--create", "create the service that services.toml declares; flags that make it fit are filled in"),
    ("--start", "start a stopped service, with --scale MIN:MAX (default: as it was)"),
    ("--stop", "stop the service; it serves nothing until it is started"),
    ("--delete", "delete the service, which cannot be undone; requires --confirm NAME"),
    ("--withdraw", "withdraw your open request for the service"),
)
ONCE = ("scale", "concurrency", "resources", "grace", "model", "accelerator", "instance_type")
EXAMPLES = """examples:
  sre-agent change gemma --set-flag max-model-len=32768 --why "longer documents" --dry-run
  sre-agent change gemma --scale 1:2 --why "launch day"
  sre-agent change gemma --restart --why "new tokenizer file"
  sre-agent change gemma --withdraw --why "not needed any more"
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the contract's flags."""
    add = parser.add_argument
    add("service", metavar="SERVICE", help="name of the service, as in services.toml")
    for name, shown, text in REPEATED:
        add(name, metavar=shown, action="append", default=[], help=text)
    add("--restart", action="store_true", help="restart the same configuration as a new revision")
    whole = parser.add_mutually_exclusive_group()
    for name, text in WHOLE:
        whole.add_argument(name, action="store_true", help=text)
    add("--platform", metavar="P", help="with --create: platform of the service; must match services.toml")
    add("--confirm", metavar="NAME", default="", help="the name of the service, typed again, for --delete")
    add("--why", metavar="TEXT", required=True, help="the reason, shown to approvers")
    add("--supersede", action="store_true", help="replace a plan of the service that nobody has approved yet")
    add("--dry-run", action="store_true", help="show difference, proof, cost and who may approve; store nothing")
    add("--by", metavar="NAME", help="your name (local mode only; shown as not verified)")
    add("--json", action="store_true", help="print JSON only")
    parser.epilog = EXAMPLES


def run(args: argparse.Namespace) -> int:
    """Ask for the change, show what it would be, or take it back.

    Returns:
        0: asked for, shown, taken back, or nothing to change; 1: it does not fit, or was refused.

    Raises:
        SreError: See :class:`agent.entrypoints.operator_client.protocol.OperatorClient`.
    """
    from agent.core.planning.requested import NothingToChange
    from agent.entrypoints.operator_client.local import open_operator_client, preview_with_own_credentials
    from agent.entrypoints.operator_client.protocol import OperatorChange

    if args.confirm and not args.delete:
        raise InputRejected(
            "the change was not understood", why="--confirm belongs to --delete", hint="leave it out, or say --delete"
        )
    if args.withdraw:
        return _withdraw(args)
    asked = OperatorChange(
        service=args.service, actions=_actions(args), why=args.why, by=args.by, supersede=args.supersede
    )
    try:
        if args.dry_run:
            return _show(preview_with_own_credentials(asked), as_json=args.json)
        client = open_operator_client()
        seen = _seen(client, asked)
        return _follow(client, client.ask(asked.with_(target=seen)), as_json=args.json)
    except NothingToChange as nothing:
        print(for_programs({"nothing_to_change": nothing.why}) if args.json else f"nothing to change: {nothing.why}")
        return 0


def _actions(args: argparse.Namespace) -> "tuple[Action, ...]":
    whole = next((name for name in ("start", "stop", "delete") if getattr(args, name)), "")
    once = {name: _single(name, getattr(args, name)) for name in ONCE}
    if args.create or args.platform:
        return _creation(args, once)
    if args.start and not once["scale"]:
        once["scale"] = _resumes_with(args.service)
    asked = AskedSettings(
        set_flag=tuple(args.set_flag),
        unset_flag=tuple(args.unset_flag),
        set_env=tuple(args.set_env),
        restart=args.restart,
        lifecycle=whole,
        confirmed=args.confirm,
        **once,
    )
    return actions_of(asked, shape_of=_shape_of(args.service), type_of=lambda name: _type_of(args.service, name))


def _creation(args: argparse.Namespace, once: dict[str, str]) -> "tuple[Action, ...]":
    """Return the creation of what services.toml names; what it is made of is said there, not here."""
    from agent.app.catalogues import read_capacity, read_services
    from agent.core.planning.creation import creation
    from agent.settings import read_settings

    others = [args.set_flag, args.unset_flag, args.set_env, args.restart, once["scale"], once["concurrency"]]
    if not args.create or any((*others, once["resources"], once["grace"], once["instance_type"])):
        raise InputRejected(
            "the change was not understood",
            why="--platform belongs to --create" if not args.create else "--create goes with --model and --accelerator",
            hint="say the rest in services.toml, under [service.declared]",
        )
    settings = read_settings()
    services = read_services(settings)
    said = {name: once[name] or None for name in ("model", "accelerator")}
    fits = read_capacity(services, settings)
    return (creation(services.service(args.service), fits, **said, platform=args.platform),)


def _resumes_with(service: str) -> str:
    """Return the instances that a stopped service had, as MIN:MAX; nothing where it is not stopped.

    Raises:
        InputRejected: Nobody can tell from here, so the person must say.
    """
    from agent.entrypoints.cli.service_reader import open_service_reader

    (view,) = open_service_reader().views(service)
    if view.live is None and view.deployed:
        raise InputRejected(
            f"the start of {service!r} was not asked for",
            why=f"how many instances it had is not known here: {view.not_described.rstrip('.')}",
            hint="say how many: --scale MIN:MAX",
        )
    resumes = view.live.resumes_with if view.live is not None else None
    return "{}:{}".format(*resumes) if resumes is not None else ""


def _single(name: str, given: list[str]) -> str:
    if len(set(given)) > 1:
        raise InputRejected(
            "the change was not understood",
            why=f"--{name.replace('_', '-')} has {len(given)} values",
            hint="give each setting once",
        )
    return given[0] if given else ""


def _shape_of(service: str) -> "ShapeOf":
    """Return what finds the usual CPU and memory of an accelerator where a service runs; catalogues are read then."""

    def find(accelerator: str) -> tuple[float, int] | None:
        from agent.app.catalogues import read_capacity, read_services
        from agent.settings import read_settings

        return read_capacity(read_services(read_settings())).usual_shape(service, accelerator)

    return find


def _type_of(service: str, name: str) -> "SetInstanceType | None":
    from agent.app.catalogues import read_capacity, read_services
    from agent.settings import read_settings

    return read_capacity(read_services(read_settings())).instance_type(service, name)


def _seen(client: "OperatorClient", asked: "OperatorChange") -> "Target | None":
    """Look first where we can, so that what cannot be is refused before anything is stored; return what was seen."""
    from agent.entrypoints.operator_client.local import LocalClient

    if not isinstance(client, LocalClient) or not client.sees(asked.service):
        return None
    return client.preview(asked).plan.target


def _show(preview: "ChangePreview", *, as_json: bool) -> int:
    from agent.entrypoints.operator_client.protocol import now
    from agent.presentation.terminal_text import plan_lines

    own = preview.self_approval
    if as_json:
        plan = preview.plan.model_dump(mode="json")
        rows = [row.model_dump(mode="json") for row in preview.policy]
        shown = {"plan": plan, "may_approve": list(preview.approvers), "self_approval": own, "policy": rows}
        print(for_programs(shown))
        return 0
    said = [_speed(preview, line) for line in plan_lines(preview.plan, now=now(), asked=False)[1:]]
    who = ", ".join(preview.approvers) or ("you" if own else "nobody whom policy.toml names for this service")
    also = ", or you yourself (your name is not verified here)" if own and preview.approvers else ""
    said += [f"    policy   needs a person, never automatic; may approve: {for_people(who + also, lines=False)}"]
    said += [f"    {row.check:<8} {for_people(row.says, lines=False)}" for row in preview.policy if _matters(row)]
    print(without_secrets("\n".join(["dry run: nothing was stored or changed", *said])))
    return 0


def _speed(preview: "ChangePreview", line: str) -> str:
    """Say the speed before, too."""
    before, lead = preview.decode_tokens_per_s_now, "    speed    "
    return f"{lead}{before:,.1f} -> {line.removeprefix(lead)}" if before is not None and line.startswith(lead) else line


def _matters(row: "Row") -> bool:
    """Whether a row says more than that all is well, and than the line about who may approve."""
    from agent.presentation.policy_explanation import Answer

    return row.answer is not Answer.OK and row.check not in {"rule", "approvers"}


def _follow(client: "OperatorClient", life: Incident, *, as_json: bool) -> int:
    """Wait a moment for the plan of a request, then say how it stands and what follows."""
    from agent.entrypoints.cli.follow import look_until

    life = look_until(client, life.id, _is_planned, limit_s=WAIT_S)
    _print(life, as_json=as_json)
    return 1 if life.phase in {Phase.REFUSED, Phase.CLOSED} else 0


def _is_planned(life: Incident) -> bool:
    return life.phase not in {Phase.OPEN, Phase.PLANNED} or _waits(life)


def _waits(life: Incident) -> bool:
    return life.request is not None and life.request.waits_for is not None


def _print(life: Incident, *, as_json: bool) -> None:
    from agent.entrypoints.cli.commands.replay import incident_json
    from agent.entrypoints.operator_client.protocol import now
    from agent.presentation.terminal_text import lines

    if as_json:
        print(for_programs(incident_json(life)))
        return
    print(without_secrets("\n".join(lines(life, now=now()))))
    if life.phase is Phase.OPEN and not _waits(life):
        print("its plan is made by the running service (sre-agent up); see: sre-agent incidents show " + life.id)


def _withdraw(args: argparse.Namespace) -> int:
    from agent.entrypoints.operator_client.local import open_operator_client
    from agent.ports.store import Query

    asks = ("set_flag", "unset_flag", "set_env", "restart", "platform", "supersede", "dry_run", *ONCE)
    if any(getattr(args, name) for name in asks):
        raise InputRejected(
            "nothing was taken back",
            why="--withdraw stands alone: it takes back what was asked for and asks for nothing",
            hint="remove the other arguments",
        )
    client = open_operator_client()
    found = client.incidents(Query(service=args.service, open_only=True))
    requests = [life for life in found if life.request is not None]
    refusal: SreError = InputRejected(
        f"no request of {args.service!r} was taken back",
        why="none is open",
        hint=f"see: sre-agent incidents list --service {args.service}",
    )
    for life in requests:
        try:
            _print(client.withdraw(life.id, by=args.by, why=args.why), as_json=args.json)
        except PolicyRefused as error:  # somebody else's, or approved: one's own may stand behind it
            refusal = error
            continue
        return 0
    raise refusal
