"""What can be looked at without leaving this machine: settings, files, keys, the queue."""

import os
import platform
import re
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Final

from agent.app.catalogues import read_policy, read_services
from agent.app.tracing import open_tracer
from agent.catalogue.load_fit import load_fit_catalogue
from agent.core.service.services import Services
from agent.entrypoints.cli.doctor.finding import Finding, bad, good, off
from agent.entrypoints.http.ingest import SECRET_BYTES
from agent.errors import DISTRIBUTION, SettingsRejected
from agent.settings import Settings, read_settings

_OF_EXTRA: Final = re.compile(r"([A-Za-z0-9._-]+).*;.*extra == ['\"]([a-z]+)['\"]")


def installation() -> Finding:
    """Say what runs here: which form of the package, on what, and which extras are there."""
    inside = "_application" in Path(__file__).parts
    container = Path("/.dockerenv").exists() or Path("/run/.containerenv").exists()
    form = ("a package in a container" if container else "a package") if inside else "a checkout"
    runs = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.system()}"
    try:
        release, wanted = version(DISTRIBUTION), requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return bad("installation", f"{form} that pip does not know, {runs}", "make install, or install the wheel")
    needed = [found.groups() for row in wanted if (found := _OF_EXTRA.match(row))]
    missing = sorted({extra for name, extra in needed if not _is_installed(name)})
    extras = f"extras that are not installed: {', '.join(missing)}" if missing else "every extra is installed"
    return good("installation", f"{form}, {release}, {runs}; {extras}")


def _is_installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def read_what_can_be(environ: Mapping[str, str]) -> tuple[Settings, list[Finding]]:
    """Return the settings without those that are wrong, and a finding for each of these."""
    try:
        return read_settings(environ), [good("settings", "every setting can be read")]
    except SettingsRejected as error:
        mistakes = error.why.split("; ")
    found = [bad(f"setting:{m.split(' ')[0]}", m, "correct it; docs/settings.md explains each") for m in mistakes]
    named = {word for mistake in mistakes for word in mistake.replace(",", " ").split() if word.isupper()}
    kept = {key: value for key, value in environ.items() if key not in named}
    try:
        return read_settings(kept), found
    except SettingsRejected:
        return Settings(), found


def services_file(settings: Settings) -> tuple[Services | None, list[Finding]]:
    """Return what is watched, None where that cannot be read."""
    try:
        services = read_services(settings)
    except SettingsRejected as error:
        return None, [bad("services", error.why, error.hint)]
    known = load_fit_catalogue().accelerators
    odd = [
        bad(f"service:{s.name}", f"accelerator {s.accelerator!r} is not in the catalogue", f"one of {', '.join(known)}")
        for s in services.services
        if s.accelerator not in known
    ]
    names = ", ".join(s.name for s in services.services)
    verb = "simulated" if settings.services is None and settings.platform.startswith("rehearsal:") else "watched"
    return services, odd or [good("services", f"{verb}: {names or 'none'}")]


def policy_file(settings: Settings) -> Iterator[Finding]:
    """Look at the policy and at who may approve."""
    try:
        policy = read_policy(settings)
    except (SettingsRejected, OSError) as error:
        yield bad("policy", getattr(error, "why", str(error)), "correct the file that POLICY names")
        return
    if settings.policy is None:
        yield off("policy", "none is named: nothing is automatic, and a person is asked about everything")
    elif not policy.approvers and not settings.embedded:
        yield bad("policy", "it names nobody who may approve", "add [[approvers]] to the file")
    else:
        yield good("policy", f"{len(policy.rules)} rules, {len(policy.approvers)} approvers")


def state_folder(settings: Settings) -> Iterator[Finding]:
    """Look at the folder of the embedded state and the key in it."""
    if not settings.embedded:
        return
    folder = settings.state
    if folder.exists() and not folder.is_dir():
        yield bad("state", f"{str(folder)!r} is a file", "set STORE=sqlite:<folder>")
        return
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        yield bad(
            "state", f"in {str(folder)!r}: {str(there)!r} cannot be written", "set STORE=sqlite:<folder>, or a volume"
        )
        return
    yield good("state", f"in {str(folder)!r}" + ("" if folder.exists() else ", made at the first start"))
    for path in sorted(folder.glob("*.key")):
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            yield bad("receipt-key", f"{path.name} can be read by others (mode {mode:o})", f"chmod 600 {path}")
        else:
            yield good("receipt-key", f"only you can read {path.name}")


def receipt_key(settings: Settings) -> Iterator[Finding]:
    """Look at the key that signs decisions, where the settings must bring it."""
    if settings.embedded:
        return
    if settings.receipt_key is None:
        yield off("receipt-key", "not here; only decide and on_decision may hold it")
    else:
        yield good("receipt-key", "here, and long enough")


def channels(settings: Settings) -> Iterator[Finding]:
    """Look at what webhooks and senders of alerts need."""
    urls, secrets = settings.webhook_urls, settings.webhook_secrets
    plain = [url for url in urls if not url.startswith("https://") and "://127.0.0.1" not in url]
    if not urls:
        yield off("webhooks", "none is named")
    elif plain:
        yield bad("webhooks", f"{plain[0]!r} is not https", "decisions travel there; use https")
    elif not secrets:
        yield bad("webhooks", "WEBHOOK_SECRETS is unset: nothing can be signed", "set one whsec_ secret for each URL")
    else:
        yield good("webhooks", f"{len(urls)} with {len(secrets)} secrets")
    short = sorted(n for n, s in settings.ingest_secrets.items() if len(s.get_secret_value().encode()) < SECRET_BYTES)
    if short:
        yield bad("ingest", f"the secret of {', '.join(short)} is too short", f"{SECRET_BYTES} bytes or more")
    elif settings.ingest_secrets:
        yield good("ingest", f"senders: {', '.join(sorted(settings.ingest_secrets))}")
    else:
        yield off("ingest", "no sender is named")


def kill_switch(settings: Settings) -> Iterator[Finding]:
    """Look at the switch of the environment."""
    if settings.kill_switch:
        yield bad("kill-switch", "on: nothing is changed, not even rolled back", "unset KILL_SWITCH when it may go on")
    else:
        yield good("kill-switch", "off in the settings")


def traces(settings: Settings) -> Iterator[Finding]:
    """Open what would send traces, as ``up`` does; nothing is sent."""
    try:
        tracer = open_tracer(settings, "doctor")
    except SettingsRejected as error:
        yield bad("traces", error.why, error.hint)
        return
    if tracer is None:
        yield off("traces", "no collector is named, or OTEL_TRACES_EXPORTER is none")
        return
    tracer.close()
    if tracer.target:
        yield good("traces", f"to {tracer.target}; the collector is not asked")
    else:
        yield off("traces", "OTEL_SDK_DISABLED is set")
