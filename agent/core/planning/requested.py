"""A change that a person asks for: proposed as it was asked for, or refused with the nearest that fits."""

from collections.abc import Mapping
from typing import ClassVar, Final

from agent.core.decision.policy import Mode, Policy
from agent.core.incident.incident import Incident
from agent.core.plan.action import (
    Action,
    Lifecycle,
    LifecycleOperation,
    Restart,
    SetFlag,
    SetModel,
    SetScaling,
    applied,
    difference,
)
from agent.core.plan.capacity import Capacity, FitOption
from agent.core.plan.lifecycle import already_so, ends_service, lifecycle_of
from agent.core.plan.proof import Memory, Proof, affected_memory
from agent.core.planning.by_hand import lifecycle_commands
from agent.core.planning.candidates import Candidate
from agent.core.planning.creation import check_creation
from agent.core.planning.planning import Known, Proposal, proposal_of
from agent.core.service.container_args import starts_in_shell
from agent.core.service.services import Service
from agent.core.service.serving import Live, ServingConfig, Target
from agent.errors import InputRejected, PolicyRefused

NEAREST: Final = 3  # ways out that are named


class NothingToChange(InputRejected):
    """The service is already as it was asked for: nothing is done."""

    exit_code: ClassVar[int] = 0


class StateMoved(PolicyRefused):
    """The service is not the one that the asker saw."""


class DoesNotFit(PolicyRefused):
    """The arithmetic says that it does not fit, or nothing proves that it does."""

    exit_code: ClassVar[int] = 1


def propose_requested(
    incident: Incident, service: Service, live: Live | None, fits: Capacity, policy: Policy
) -> Proposal:
    """Return the requested change with its difference, proof, price and risk.

    Args:
        incident: Of a request.
        service: As services.toml names it.
        live: The service as it is; None where we have no adapter for its platform.
        fits: The arithmetic.
        policy: What may be changed.

    Raises:
        NothingToChange: It is so already.
        StateMoved: It was asked for another state of the service.
        DoesNotFit: It does not fit, or that it does is not proved; the hint names the nearest that does.
        PolicyRefused: Policy never allows it, or it cannot be done by us.
    """
    request = incident.require_request()
    if live is None:
        hint = _by_hand("make the change by hand", service, request.actions)
        raise _refused(request.service, "there is no adapter for its platform", hint)
    if request.waits_for is None:  # else the asker was told that another change comes first
        check_target(request.target, live)
    check_policy(service, request.actions, policy)
    after = applied(live.config, request.actions)
    _check_changes(request.service, request.actions, live, after)
    fit = fits.assess(request.service, after)
    if Memory.DEVICE in affected_memory(request.actions) and fit.fits is False:
        raise _does_not_fit(request.service, request.actions, fit.sentence, fits.options(request.service, after))
    known = Known(incident=incident, live=live, fits=fits, policy=policy, printed=None)
    proposal = proposal_of(known, Candidate(actions=request.actions, why=request.why, fit=fit))
    if proposal is None:
        says = f"{fit.sentence}; the present configuration does not fit either" if fit.fits is False else ""
        raise _refused(request.service, says or "it cannot be changed by us now", "look at the service first")
    if proposal.proof is Proof.NONE:
        missing = "; ".join(proposal.proof_missing) or fit.sentence
        raise DoesNotFit(
            f"the change of {request.service!r} was refused",
            why=f"nothing proves that its memory suffices: {missing}",
            hint="say what is missing (services.toml, sre-agent models add), or ask for a change that can be proved",
        )
    return proposal


def check_target(target: Target | None, live: Live) -> None:
    """Refuse a request that was made for another state than the one that stands.

    Raises:
        StateMoved: The service changed since.
    """
    if target is not None and target != live.target:
        raise StateMoved(
            f"the change of {live.service!r} was refused",
            why=f"the service changed since it was asked for (generation {target.generation}, now {live.generation})",
            hint="look at the service as it is now, and ask again",
        )


def check_policy(service: Service, actions: tuple[Action, ...], policy: Policy) -> None:
    """Refuse what no approval can allow: values outside the bounds, and kinds that policy never allows.

    A creation is of what services.toml names, too.

    Where the policy does not let us create, start, stop or delete the service, the hint is the commands for a person.

    Raises:
        PolicyRefused: It is not allowed.
        InputRejected: What would be created is not what services.toml names.
    """
    name = service.name
    if lifecycle_of(actions) is not None and name not in policy.lifecycle:
        hint = _by_hand(f"add {name!r} to 'lifecycle' in policy.toml, or do it by hand", service, actions)
        raise _refused(name, next(filter(None, policy.objections(actions, name))), hint)
    policy.check(actions, name)
    for config in (a.config for a in actions if isinstance(a, Lifecycle) and a.config is not None):
        check_creation(service, config)
    if policy.mode(name, actions) is Mode.NEVER:
        kinds = ", ".join(sorted({action.kind for action in actions}))
        hint = _by_hand("change policy.toml, or do it by hand", service, actions)
        raise _refused(name, f"policy.toml never allows {kinds} for it", hint)


def _by_hand(hint: str, service: Service, actions: tuple[Action, ...]) -> str:
    return ": ".join((hint, " && ".join(commands))) if (commands := lifecycle_commands(service, actions)) else hint


def _check_changes(service: str, actions: tuple[Action, ...], live: Live, after: ServingConfig) -> None:
    hidden = starts_in_shell(live.config.command, live.config.args)
    if hidden and any(isinstance(action, SetFlag | SetModel) for action in actions):
        raise _refused(
            service,
            "its container starts in a shell or a script, which hides the flags",
            "start vLLM without a shell, or change the script by hand",
        )
    if live.scaled_by and any(map(_scales, actions)):
        raise _refused(
            service, f"the number of its instances belongs to {live.scaled_by}", "change it there, then ask again"
        )
    restart = any(isinstance(action, Restart) for action in actions)
    operation = lifecycle_of(actions)
    so = already_so(service, operation, live) if operation is not None else ""
    if so or (not restart and not difference(live.config, after)):
        raise NothingToChange(
            f"nothing was asked of {service!r}",
            why=so or "the service is already as you want it",
            hint=f"see: sre-agent incidents list --service {service}",
        )
    ends = any(map(ends_service, actions))
    if live.pinned_to is not None and not ends and not (live.spare_accelerator and live.ready is not False):
        raise _refused(
            service,
            f"its traffic, or a share of it, is pinned to {live.pinned_to!r}, so a change in place would not serve",
            "let all traffic follow the latest revision, then ask again",
        )


def _scales(action: Action) -> bool:
    whole = {LifecycleOperation.START, LifecycleOperation.STOP}
    return isinstance(action, SetScaling) or (isinstance(action, Lifecycle) and action.operation in whole)


def _does_not_fit(
    service: str, actions: tuple[Action, ...], sentence: str, options: tuple[FitOption, ...]
) -> DoesNotFit:
    nearest = nearest_that_fits(actions, options)
    hint = f"this does: {'; or '.join(nearest)}" if nearest else "ask for less, or for another accelerator"
    return DoesNotFit(f"the change of {service!r} was refused", why=sentence, hint=hint)


def nearest_that_fits(actions: tuple[Action, ...], options: tuple[FitOption, ...]) -> tuple[str, ...]:
    """Return what would fit instead, the least change first: another value, a flag beside it, or another place.

    Args:
        actions: What was asked for.
        options: Changes of the requested configuration that fit.
    """
    asked = {action.name.replace("_", "-") for action in actions if isinstance(action, SetFlag)}
    instead = [_flags(o.flags) for o in options if o.elsewhere is None and o.flags and set(o.flags) <= asked]
    beside = [f"with {_flags(o.flags)}" for o in options if o.elsewhere is None and o.flags and set(o.flags) - asked]
    elsewhere = [o.elsewhere for o in options if o.elsewhere is not None]
    return tuple(dict.fromkeys([*instead[:1], *beside[:1], *elsewhere[:1]]))[:NEAREST]


def _flags(flags: Mapping[str, str | None]) -> str:
    words = (f"without --{name}" if value is None else f"--{name} {value}".strip() for name, value in flags.items())
    return ", ".join(words)


def _refused(service: str, why: str, hint: str) -> PolicyRefused:
    return PolicyRefused(f"the change of {service!r} was refused", why=why, hint=hint)
