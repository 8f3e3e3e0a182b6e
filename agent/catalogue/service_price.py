"""What a watched service runs on, and what an hour of one instance costs there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.core.plan.action import SetInstanceType
from agent.core.plan.capacity import Move
from agent.core.service.services import Service
from agent.core.service.serving import ServingConfig
from agent.fit.speed.price import Shape, find_shapes

MIB = 2**20
RENTED_ON = {"cloud_run": "cloud_run", "container_apps": "container_apps", "ec2": "ec2", "tpu_vm": "tpu_vm"}
TYPED = frozenset({"ec2"})  # whose shapes are named for the type of a machine
PRICED_AS = {**RENTED_ON, "kubernetes": "gke"}
"""Whose prices a platform has. A host of one's own has none, and a cluster elsewhere says its own in services.toml."""


def running_shape(service: Service, config: ServingConfig, shapes: Sequence[Shape]) -> Shape | None:
    """Return the rented shape of a configuration, at the price of its own CPUs and memory; None where nobody knows.

    Args:
        service: Where it runs; its own price wins.
        config: Devices, CPUs and memory.
        shapes: The price table.
    """
    if config.accelerator is None:
        return None
    platform, declared = PRICED_AS.get(service.platform), service.usd_per_h
    if declared is not None and (config.accelerator, config.accelerator_count) != (
        service.accelerator,
        service.accelerator_count,
    ):
        return None  # a price of one's own is that of the accelerator beside it in services.toml
    rented = find_shapes(shapes, config.accelerator, config.accelerator_count, platform=platform)
    found = None if platform is None else _nearest(rented, config)
    if found is None:
        return None if declared is None else _unlisted(service, config, declared)
    memory = None if config.memory_mib is None else config.memory_mib * MIB
    return replace(
        found,
        usd_per_h=found.priced(vcpus=config.cpu, memory_bytes=memory) if declared is None else declared,
        source=found.source if declared is None else "services.toml",
        vcpus=found.vcpus if config.cpu is None else int(config.cpu),
        memory_bytes=found.memory_bytes if memory is None else memory,
    )


def usual_size(service: Service, accelerator: str, shapes: Sequence[Shape]) -> tuple[float, int] | None:
    """Return the CPUs and MiB that an accelerator is usually rented with where a service runs; None if unknown."""
    platform = RENTED_ON.get(service.platform)
    rented = find_shapes(shapes, accelerator, service.accelerator_count, platform=platform)
    shape = next((s for s in rented if s.count == service.accelerator_count and s.vcpus and s.memory_bytes), None)
    return (float(shape.vcpus), shape.memory_bytes // MIB) if shape is not None and platform is not None else None


def typed(service: Service, name: str, shapes: Sequence[Shape]) -> SetInstanceType | None:
    """Return what a type of machine has, where types of a service's platform are listed by name; else None."""
    shape = next((s for s in shapes if s.platform == service.platform and s.name == f"{s.platform}-{name}"), None)
    if shape is None or service.platform not in TYPED:
        return None
    return SetInstanceType(
        instance_type=name,
        accelerator=shape.accelerator,
        accelerator_count=shape.count,
        cpu=float(shape.vcpus),
        memory_mib=shape.memory_bytes // MIB,
    )


def move_to(
    service: Service, accelerator: str, count: int, shapes: Sequence[Shape], *, model: str | None
) -> Move | None:
    """Return a move to the usual shape of another accelerator where a service runs; None if none is rented there."""
    platform = RENTED_ON.get(service.platform)
    rented = find_shapes(shapes, accelerator, count, platform=platform)
    exact = (s for s in rented if s.count == count and s.vcpus and s.memory_bytes)
    shape = next(exact, None) if platform is not None else None
    if shape is None:
        return None
    return Move(
        model=model,
        accelerator=accelerator,
        cpu=float(shape.vcpus),
        memory_mib=shape.memory_bytes // MIB,
        instance_type=shape.name.removeprefix(f"{platform}-") if platform in TYPED else None,
    )


def _nearest(shapes: Sequence[Shape], config: ServingConfig) -> Shape | None:
    """The shape of that name; else with exactly these devices and the nearest memory, the usual one if unknown."""
    exact = [shape for shape in shapes if shape.count == config.accelerator_count]
    named = next((shape for shape in exact if shape.name == f"{shape.platform}-{config.instance_type}"), None)
    if named is not None:
        return named
    if config.memory_mib is None:
        return next(iter(exact), None)
    wanted = config.memory_mib * MIB
    return min(exact, key=lambda shape: abs(shape.memory_bytes - wanted), default=None)


def _unlisted(service: Service, config: ServingConfig, usd_per_h: float) -> Shape:
    return Shape(
        name=service.name,
        platform=service.platform,
        accelerator=config.accelerator or "",
        count=config.accelerator_count,
        vcpus=int(config.cpu or 0),
        memory_bytes=(config.memory_mib or 0) * MIB,
        usd_per_h=usd_per_h,
        sleeps=False,
        region=service.location or "",
        as_of="",
        source="services.toml",
    )
