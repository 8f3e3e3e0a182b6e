"""The model, put together from the settings: its endpoints, how we prove who we are, how its words are used."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from agent.catalogue.load_bundled import load_prompt
from agent.catalogue.load_failures import load_failures
from agent.core.diagnosis.model_request import ModelUse, When
from agent.failures.signature import FailureClass
from agent.ports.model import Model
from agent.settings import Settings

if TYPE_CHECKING:
    from agent.adapters.model.endpoint import Endpoint

PROMPT_VERSION = 1


@cache
def _use() -> ModelUse:
    catalogue = load_failures()
    return ModelUse(
        prompt=load_prompt("diagnose", version=PROMPT_VERSION),
        classes=tuple(str(class_) for class_ in FailureClass),
        fixes={str(class_): words.fixes for class_, words in catalogue.classes.items()},
    )


def model_use(settings: Settings) -> ModelUse:
    """Return how the model is asked; the prompt and the catalogue are read once per process."""
    return replace(
        _use(), when=When(settings.model_ask_when), wake=When(settings.model_wake_when), may_ask=settings.model_may_ask
    )


def model_of(settings: Settings) -> Model | None:
    """Return the model of the settings, or None where none is wanted.

    Raises:
        SettingsRejected: An endpoint or the file of recorded answers cannot be read.
    """
    if settings.model_ask_when == When.NEVER:
        return None
    recorded = [Path(text.removeprefix("recorded:")) for text in settings.model_endpoints if _is_recorded(text)]
    urls = [text for text in settings.model_endpoints if not _is_recorded(text)]
    model = _endpoints(urls, settings) if urls else None
    if recorded:
        from agent.adapters.model.recorded import RecordedModel

        return RecordedModel(recorded[0], inner=model)
    return model


def _is_recorded(text: str) -> bool:
    return text.startswith("recorded:")


def _endpoints(urls: list[str], settings: Settings) -> Model:
    from agent.adapters.model.endpoint import parse_endpoint
    from agent.adapters.model.id_tokens import IdTokens, google_id_token
    from agent.adapters.model.openai_chat import OpenAiChat

    tokens = IdTokens(google_id_token, time.time)  # noqa: TID251 - a token's end is a time of day, no stage's business
    endpoints = [parse_endpoint(url, model=settings.model_name) for url in urls]
    return OpenAiChat(endpoints, headers=lambda endpoint: _headers(endpoint, settings.model_api_key, tokens.token))


def _headers(endpoint: "Endpoint", key: SecretStr | None, token: Callable[[str], str]) -> dict[str, str]:
    """Say who we are: by the key of the server, by the identity for Cloud Run, or by both, each in its header."""
    headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key is not None else {}
    if endpoint.audience is not None:
        name = "X-Serverless-Authorization" if headers else "Authorization"
        headers[name] = f"Bearer {token(endpoint.audience)}"
    return headers
