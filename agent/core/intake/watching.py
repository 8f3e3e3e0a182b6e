"""Which watched service a place is: by its name, or by labels that the owner marked it with."""

from agent.core.intake.origin import ResourceRef, Watched, watch_everything
from agent.core.service.services import Services


def watching(services: Services) -> Watched:
    """Return the lookup for what ``services.toml`` watches; project and location must agree where both are given.

    Where nothing is listed, everything is watched under the name in the body.
    """
    if not services.services:
        return watch_everything

    def find(place: ResourceRef) -> str | None:
        where = {"project_id": place.project, "location": place.location}
        where = {key: value for key, value in where.items() if value}
        found = services.by_labels({"service_name": place.service} | where) or services.by_labels(
            {**place.labels, **where}
        )
        return found.name if found else None

    return find
