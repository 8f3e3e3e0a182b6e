"""The operator's own ID token: of a service account for one audience, or of a person as gcloud prints it."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any, Final

from agent.errors import DependencyFailed

GCLOUD: Final = ("gcloud", "auth", "print-identity-token")
"""It makes a new token at every call; a person's carries gcloud's own client id as its audience, whatever is asked for.
Read in the source of gcloud, `surface/auth/print_identity_token.py` and `core/config.py` (2026-11-21)."""

TIMEOUT_S: Final = 60.0
_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")


def operator_token(audience: str, *, command: Sequence[str] = ()) -> str:
    """Return an ID token of whoever works here.

    Args:
        audience: For whom it is made, where its maker lets us choose.
        command: The operator's own words that print one; these alone are tried then.

    Raises:
        DependencyFailed: None can be had; ``why`` says what was tried.
    """
    if command:
        return printed(command)
    tried, credentials = _default_credentials()
    if credentials is not None:
        found, said = _of_account(credentials, audience)
        if found:
            return found
        tried = said
    if shutil.which(GCLOUD[0]) is not None:
        return printed(GCLOUD)
    token = _of_person(credentials) if credentials is not None else ""
    if token:
        return token
    raise _none(f"{tried}; gcloud is not installed")


def printed(command: Sequence[str]) -> str:
    """Return the token that a command prints; it gets no shell and no input.

    Raises:
        DependencyFailed: It cannot be run, fails, or prints something else.
    """
    name = " ".join(command)[:120]
    try:
        ran = subprocess.run(  # noqa: S603 - fixed words: ours, or the operator's own setting
            list(command), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise _none(f"{name!r} did not run: {type(error).__name__}") from error
    token = ran.stdout.strip()
    if ran.returncode != 0:
        raise _none(f"{name!r} ended with {ran.returncode}: {' '.join(ran.stderr.split())[:300]}")
    if not _TOKEN.fullmatch(token):
        raise _none(f"{name!r} printed no token")
    return token


def _default_credentials() -> tuple[str, Any]:
    import google.auth
    import google.auth.exceptions

    try:
        credentials, _ = google.auth.default()
    except google.auth.exceptions.GoogleAuthError as error:
        return f"there are no application default credentials ({type(error).__name__})", None
    return "", credentials


def _of_account(credentials: Any, audience: str) -> tuple[str, str]:
    """Return a service account's token for an audience; or nothing, and why, where these are a person's credentials."""
    import google.auth.exceptions
    from google.auth import compute_engine, impersonated_credentials
    from google.auth.transport.requests import Request
    from google.oauth2 import service_account

    made: Any
    request: Any = Request()
    if isinstance(credentials, service_account.Credentials):
        made = service_account.IDTokenCredentials(  # type: ignore[no-untyped-call]
            signer=credentials.signer,
            service_account_email=credentials.service_account_email,
            token_uri=credentials._token_uri,  # noqa: SLF001 - there is no public name for it
            target_audience=audience,
        )
    elif isinstance(credentials, impersonated_credentials.Credentials):
        made = impersonated_credentials.IDTokenCredentials(  # type: ignore[no-untyped-call]
            credentials, target_audience=audience, include_email=True
        )
    elif isinstance(credentials, compute_engine.Credentials):
        made = compute_engine.IDTokenCredentials(  # type: ignore[no-untyped-call]
            request, audience, use_metadata_identity_endpoint=True
        )
    else:
        return "", f"{type(credentials).__name__} of a person make no token for an audience"
    try:
        made.refresh(request)
    except google.auth.exceptions.GoogleAuthError as error:
        raise _none(f"{type(error).__name__}: {str(error)[:300]}") from error
    return str(made.token), ""


def _of_person(credentials: Any) -> str:
    """Return the ID token that comes with a person's own access token, or nothing."""
    import google.auth.exceptions
    from google.auth.transport.requests import Request

    try:
        credentials.refresh(Request())
    except google.auth.exceptions.GoogleAuthError as error:
        raise _none(f"{type(error).__name__}: {str(error)[:300]}") from error
    return str(getattr(credentials, "id_token", None) or "")


def _none(why: str) -> DependencyFailed:
    return DependencyFailed(
        "no ID token of yours was found",
        why=why,
        hint="run: gcloud auth login; or set ID_TOKEN_COMMAND to what prints one (docs/security.md)",
    )
