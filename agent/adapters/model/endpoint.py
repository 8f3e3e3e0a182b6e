"""An endpoint is one OpenAI-compatible server: where it is, whether it sleeps, how we prove who we are."""

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit, urlunsplit

from agent.errors import SettingsRejected

CLOUD_RUN = ".run.app"
_TAILS = (
    re.compile(r"-\d{6,}$"),  # SERVICE-PROJECTNUMBER.REGION.run.app
    re.compile(r"-[a-z0-9]{10}-[a-z]{2,3}$"),  # SERVICE-HASH-REGIONCODE.a.run.app
)
"""The two forms of a Cloud Run URL: https://docs.cloud.google.com/run/docs/triggering/https-request (2026-11-21)."""

_WORDS = frozenset({"service", "sleeps", "audience", "model"})


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One server.

    Attributes:
        base_url: Up to and with ``/v1``, without a slash at the end.
        service: The watched service that it is, where known; asking the patient about itself is no use.
        sleeps: Whether it may be scaled to zero.
        audience: For whom an ID token is made; None sends none.
        model: The model to ask for; None takes the first that it lists.
    """

    base_url: str
    service: str | None = None
    sleeps: bool = False
    audience: str | None = None
    model: str | None = None

    @property
    def root(self) -> str:
        """The server's root, where vLLM has ``/tokenize``."""
        return self.base_url.removesuffix("/v1")


def parse_endpoint(text: str, *, model: str | None = None) -> Endpoint:
    """Read one endpoint of the settings.

    Args:
        text: A base URL; a fragment may add ``#service=NAME&sleeps=yes|no&audience=URL&model=M``.
            A Cloud Run URL is taken to sleep, to want an ID token for its own origin, and to name its service.
        model: The model where the fragment names none.

    Raises:
        SettingsRejected: It is no http(s) URL, or the fragment says something else.
    """
    parts = urlsplit(text)
    said = {name: values[-1] for name, values in parse_qs(parts.fragment).items()}
    if parts.scheme not in {"http", "https"} or not parts.hostname or not set(said) <= _WORDS:
        raise SettingsRejected(
            "1 setting",
            why=f"MODEL_ENDPOINTS has {text!r}, want http(s)://HOST/v1[#service=..&sleeps=..&audience=..&model=..]",
            hint="see docs/model.md",
        )
    cloud = parts.hostname.endswith(CLOUD_RUN)
    origin = f"{parts.scheme}://{parts.netloc}"
    path = parts.path.rstrip("/")
    return Endpoint(
        base_url=urlunsplit((parts.scheme, parts.netloc, path or "/v1", "", "")),
        service=said.get("service", _service(parts.hostname) if cloud else None),
        sleeps=said.get("sleeps", "yes" if cloud else "no") == "yes",
        audience=said.get("audience", origin if cloud else None),
        model=said.get("model", model),
    )


def _service(host: str) -> str | None:
    label = host.split(".", 1)[0].rpartition("---")[2]  # a tag stands before three dashes
    for tail in _TAILS:
        if tail.search(label):
            return tail.sub("", label)
    return None
