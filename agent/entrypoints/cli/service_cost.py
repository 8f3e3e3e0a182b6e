"""What a watched service costs as it runs, and its open plans before and after."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from agent.app.catalogues import read_capacity
from agent.app.cost_answers import CostAnswers
from agent.core.service.serving import ServingConfig
from agent.entrypoints.cli.service_reader import open_service_reader
from agent.fit.cost.answer import CostAnswer
from agent.fit.cost.load import Load
from agent.presentation.plan_cost import plan_costs
from agent.presentation.service_view import ServiceView
from agent.settings import read_settings


def service_cost(
    name: str, load: Load, today: date, *, sweeps: Sequence[Path], tokens_per_s: float | None
) -> CostAnswer:
    """Return what a service costs; described with the operator's own credentials, never sent a request.

    Args:
        name: As in services.toml.
        load: How it is used.
        today: To tell the age of prices.
        sweeps: Folders of sweeps, whose speeds replace computed ones.
        tokens_per_s: What one request must get at least; what services.toml says where it is None.

    Raises:
        InputRejected: No service of that name is watched, or its model or flags are not known to the arithmetic.
        DependencyFailed: The state or the catalogue of profiles cannot be read.
    """
    reader = open_service_reader()
    (view,) = reader.views(name)
    capacity = read_capacity(reader.services, read_settings())
    config = view.live.config if view.live is not None else declared_config(view)
    answer = CostAnswers.open(today, sweeps=sweeps).of_service(
        capacity.setting(name, config),
        load,
        shape=capacity.shape(name, config),
        tokens_per_s=tokens_per_s or view.service.needs.tokens_per_s,
        name=name,
    )
    plans = [i.plan for i in view.incidents if i.plan is not None and not i.ended]
    said = () if view.live is not None else (f"not described ({view.not_described}): priced as services.toml says",)
    return answer.with_plans(tuple(plan_costs(plan) for plan in plans), notes=said)


def declared_config(view: ServiceView) -> ServingConfig:
    """Return what services.toml says of a service that nobody describes: model and accelerator, without flags."""
    service = view.service
    return ServingConfig(
        args=("serve", service.model),
        accelerator=service.accelerator,
        accelerator_count=service.accelerator_count,
    )
