"""Which container app a watched service is, and the names of its revisions: ours have one dash, Azure's two."""

from typing import Any

from agent.core.value import Value

Json = dict[str, Any]

LONGEST_APP = 32


class AppRef(Value):
    """One container app.

    Attributes:
        name: Of the app; the watched service has the same.
        accelerator: As services.toml says, where the workload profile is of a kind that we do not know.
        container: The container that serves the model; None where it is plain from its image or port.
        environment: The managed environment that a creation goes to; None where services.toml names none.
        has_key: Whether the server wants a key of its own, so that it may be reached from the internet.
    """

    subscription: str
    group: str
    name: str
    accelerator: str | None = None
    container: str | None = None
    environment: str | None = None
    has_key: bool = False

    @property
    def environment_id(self) -> str | None:
        """The resource id of the environment; a bare name is one of the app's own resource group."""
        if self.environment is None or self.environment.startswith("/"):
            return self.environment
        group = f"/subscriptions/{self.subscription}/resourceGroups/{self.group}"
        return f"{group}/providers/Microsoft.App/managedEnvironments/{self.environment}"

    def suffix(self, revision: str) -> str:
        """Return the suffix of a revision that we name, such as ``sre-1a2b3c4d``."""
        return revision.removeprefix(f"{self.name}-")

    def native(self, revision: str) -> str:
        """Return Azure's name of a revision."""
        suffix = self.suffix(revision)
        return f"{self.name}--{suffix}" if suffix.startswith("sre-") else revision

    def ours(self, native: str) -> str:
        """Return our name of a revision of Azure's; what we did not name keeps its own."""
        suffix = native.removeprefix(f"{self.name}--")
        return f"{self.name}-{suffix}" if suffix != native and suffix.startswith("sre-") else native


class Profile(Value):
    """A workload profile of an environment: its name there, and what kind of machine it is."""

    name: str
    kind: str


# Kinds with accelerators, and how many one replica may use: learn.microsoft.com/azure/container-apps/gpu-types and
# .../workload-profiles-overview, read 2026-11-22.
ACCELERATORS: dict[str, tuple[str, int]] = {
    "consumption-gpu-nc24-a100": ("nvidia-a100-80gb", 1),
    "consumption-gpu-nc8as-t4": ("nvidia-t4", 1),
    "nc24-a100": ("nvidia-a100-80gb", 1),
    "nc48-a100": ("nvidia-a100-80gb", 2),
    "nc96-a100": ("nvidia-a100-80gb", 4),
}


class Environment(Value):
    """A managed environment, as far as we read it.

    Attributes:
        workspace: The Log Analytics workspace that its logs go to; None where they go elsewhere.
    """

    id: str
    location: str = ""
    profiles: tuple[Profile, ...] = ()
    workspace: str | None = None

    def accelerator(self, profile: str | None, declared: str | None) -> tuple[str | None, int]:
        """Return the accelerator of a profile and how many of it a replica has.

        Args:
            profile: Its name.
            declared: What services.toml says, for a GPU profile of a kind that is newer than our table.
        """
        kind = next((p.kind for p in self.profiles if p.name == profile), profile or "").lower()
        if kind in ACCELERATORS:
            return ACCELERATORS[kind]
        return (declared, 1) if "gpu" in kind or kind.startswith("nc") else (None, 1)

    def profile_for(self, accelerator: str, count: int) -> str | None:
        """Return the profile that has this accelerator, or None."""
        wanted = (accelerator, count)
        return next((p.name for p in self.profiles if ACCELERATORS.get(p.kind.lower()) == wanted), None)


class Seen(Value):
    """An app as it is now, as Azure wrote it.

    Attributes:
        body: The resource.
        revisions: Its revisions, as they are listed.
    """

    ref: AppRef
    body: Json
    revisions: tuple[Json, ...]
    environment: Environment

    @property
    def properties(self) -> Json:
        """What stands under ``properties``."""
        found: Json = self.body.get("properties") or {}
        return found

    @property
    def template(self) -> Json:
        """The template of the newest revision."""
        found: Json = self.properties.get("template") or {}
        return found

    @property
    def ingress(self) -> Json:
        """The ingress; empty where nobody can ask the app."""
        found: Json = (self.properties.get("configuration") or {}).get("ingress") or {}
        return found

    @property
    def is_multiple(self) -> bool:
        """Whether several revisions may serve at once."""
        mode = (self.properties.get("configuration") or {}).get("activeRevisionsMode") or "Single"
        return str(mode).lower() == "multiple"

    @property
    def is_stopped(self) -> bool:
        """Whether the app as a whole is stopped."""
        return self.properties.get("runningStatus") == "Stopped"

    @property
    def in_progress(self) -> bool:
        """Whether an operation on the app is under way."""
        return self.properties.get("provisioningState") in {"InProgress", "Deleting"}

    @property
    def newest(self) -> str:
        """Azure's name of the newest revision, also of one that is about to be made."""
        suffix = self.template.get("revisionSuffix")
        return f"{self.ref.name}--{suffix}" if suffix else str(self.properties.get("latestRevisionName") or "")

    @property
    def newest_ready(self) -> str:
        """Azure's name of the newest revision that came up."""
        return str(self.properties.get("latestReadyRevisionName") or "")

    def revision(self, native: str) -> Json | None:
        """Return the properties of a revision, or None."""
        return next((r.get("properties") or {} for r in self.revisions if r.get("name") == native), None)
