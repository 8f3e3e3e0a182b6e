"""The JSON merge patches that make a change, put a prior state back, and move the traffic of a container app."""

from agent.adapters.platform.container_apps.app_ref import Json, Seen
from agent.adapters.platform.container_apps.edit import edited
from agent.adapters.platform.container_apps.template import merge_patch, parsed, stamped, traffic_of, weights_of
from agent.adapters.platform.traffic import check_not_pinned, parsed_traffic, shifted_traffic, staged_traffic
from agent.core.plan.action import LifecycleOperation
from agent.core.plan.lifecycle import lifecycle_of
from agent.core.service.serving import Traffic
from agent.errors import InputRejected
from agent.ports.platform import Order, Restore


def change_patch(seen: Seen, order: Order) -> Json:
    """Return the merge patch of a change; arrays are sent whole, and everything unnamed stays.

    Raises:
        InputRejected: It would have no effect, or Azure would refuse it.
    """
    starts = lifecycle_of(order.actions) is LifecycleOperation.START
    if seen.is_stopped and not starts:
        raise InputRejected(
            f"{order.service!r} was not changed",
            why="the app is stopped, so a new revision would not come up, and nothing could tell how the change ends",
            hint=f"start it first: sre-agent change {order.service} --start --why TEXT",
        )
    template, profile = edited(seen, order.actions)
    properties = _properties(seen, order, template, profile)
    if order.staged:
        return {"properties": properties | _traffic(seen, _staged(seen, order.revision))}
    if not starts:
        check_not_pinned(order.service, traffic_of(seen))
    return {"properties": properties}


def prior_patch(seen: Seen, order: Restore) -> Json:
    """Return the merge patch that puts template, profile and weights of before back."""
    prior = parsed(order.template)
    properties = _properties(seen, order, prior["template"], prior.get("workloadProfileName"))
    traffic = parsed_traffic(order.traffic)
    return {"properties": properties if traffic == traffic_of(seen) else properties | _traffic(seen, traffic)}


def shift_patch(seen: Seen, revision: str) -> Json:
    """Return the merge patch that gives a revision all traffic; where the weights followed the latest, so again."""
    traffic = shifted_traffic(traffic_of(seen), revision, latest_ready=seen.ref.ours(seen.newest_ready))
    return {"properties": _traffic(seen, traffic)}


def _properties(seen: Seen, order: Order | Restore, template: Json, profile: str | None) -> Json:
    made = stamped(template, seen.ref, revision=order.revision, effect_key=order.effect_key, incident=order.incident)
    properties: Json = {"template": merge_patch(seen.template, made)}
    if profile != seen.properties.get("workloadProfileName"):
        properties["workloadProfileName"] = profile
    return properties


def _traffic(seen: Seen, traffic: tuple[Traffic, ...]) -> Json:
    return {"configuration": {"ingress": {"traffic": weights_of(seen.ref, traffic)}}}


def _staged(seen: Seen, revision: str) -> tuple[Traffic, ...]:
    if not seen.is_multiple:
        raise InputRejected(
            f"{revision!r} was not staged",
            why="the app is in Single revision mode, in which the newest revision gets all traffic",
            hint="az containerapp revision set-mode --mode multiple, or change the app in place",
        )
    return staged_traffic(traffic_of(seen), revision, serving=seen.ref.ours(seen.newest_ready))
