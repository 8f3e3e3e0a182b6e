"""One run of a sweep is put together: the load generator, the server's answer to a first question, provenance."""

import os
from collections.abc import Callable
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from agent.app import App
from agent.app.http_clients import ask
from agent.app.runtime_environment import server_key_of
from agent.app.sweep_reports import register_sweep
from agent.core.sweep.grant import SweepGrant
from agent.core.sweep.provenance import Driver, Provenance
from agent.core.sweep.sweep import Subject, Sweep
from agent.errors import DISTRIBUTION, DependencyFailed, InputRejected
from agent.ports.load import LoadDriver, LoadOrder
from agent.stages.run_sweep import Progress, SweepJob

if TYPE_CHECKING:
    from agent.adapters.load.sweep_folder import SweepFolder

DRIVERS = "drivers"  # beside the store


def open_folder(folder: Path) -> "SweepFolder":
    """Return the folder of a sweep; nothing is made yet."""
    from agent.adapters.load.sweep_folder import SweepFolder

    return SweepFolder(folder)


def driver_of(app: App, wanted: Driver | None) -> LoadDriver:
    """Return the load generator to use.

    Raises:
        DependencyFailed: None is installed; the hint says how.
    """
    from agent.adapters.load.installed import find_driver

    return find_driver(wanted, app.settings.state / DRIVERS)


def install_driver(state: Path, say: Callable[[str], None]) -> None:
    """Install guidellm in an environment of its own, beside the store.

    Raises:
        DependencyFailed: It could not be installed.
    """
    from agent.adapters.load.installed import install_guidellm

    install_guidellm(state / DRIVERS, say=say)


def begin(
    app: App, sweep: Sweep, grant: SweepGrant, *, folder: Path, driver: LoadDriver, say: Callable[[Progress], None]
) -> SweepJob:
    """Ask the server which model it serves, note provenance, and return the job; the sweep is kept with it.

    Raises:
        InputRejected: It serves another model, refuses the key, or the sweep was begun with another generator.
        DependencyFailed: It does not answer, the generator does not run, or there is no room.
    """
    if sweep.stop_over_saturated and driver.name is not Driver.GUIDELLM:
        raise InputRejected(
            f"sweep {sweep.request.id!r} was not run",
            why=f"{driver.name} does not know when a server is over-saturated",
            hint="use --driver guidellm, or remove --stop-over-saturated",
        )
    if sweep.plan.asked.rates and driver.name is not Driver.GUIDELLM:
        raise InputRejected(
            f"sweep {sweep.request.id!r} was not run",
            why=f"{driver.name} has no run of request rates",
            hint="use --driver guidellm, or remove --rates",
        )
    key = _key(app, sweep.subject)
    said = check_server(sweep.subject, key)
    made = _provenance(app, sweep, driver, said)
    store = open_folder(folder)
    sweep = sweep.with_(provenance=made)
    store.keep(sweep)
    register_sweep(app.settings, folder)
    return SweepJob(
        plan=sweep.plan,
        request=sweep.request,
        grant=grant,
        provenance=made,
        driver=driver,
        store=store,
        order=LoadOrder(
            cell=sweep.plan.cells[0].planned,
            url=sweep.subject.endpoint,
            served_model=sweep.subject.served_model,
            tokenizer=sweep.subject.tokenizer,
            api_key=key,
            seed=sweep.seed,
            ignore_eos=sweep.ignore_eos,
            stop_over_saturated=sweep.stop_over_saturated,
            limit_s=1,
        ),
        holder=f"{app.holder}-{os.getpid()}",
        say=say,
    )


def check_server(subject: Subject, key: str) -> str:
    """Return the version that the server tells, empty where it tells none; refuse where it would answer nothing.

    Raises:
        InputRejected: It refuses the key, or does not serve the model.
        DependencyFailed: It does not answer, or answers something else.
    """
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    reply = ask(f"{subject.endpoint}/v1/models", headers=headers)
    what = f"the server at {subject.endpoint} was not measured"
    if reply.status in {401, 403}:
        hint = "name its key: --api-key-name NAME, as in SERVICE_API_KEYS"
        raise InputRejected(what, why=f"it refuses the key (HTTP {reply.status})", hint=hint)
    names = reply.models
    if reply.status != 200 or not names:
        raise DependencyFailed(
            what,
            why=f"GET /v1/models answered HTTP {reply.status} and no list of models",
            hint="is it an OpenAI-compatible server, and up?",
        )
    if subject.served_model not in names:
        close = get_close_matches(subject.served_model, names, n=1)
        hint = f"did you mean --served-model {close[0]}?" if close else f"--served-model {names[0]}"
        raise InputRejected(what, why=f"it serves {', '.join(names)}, not {subject.served_model!r}", hint=hint)
    try:
        reply = ask(f"{subject.endpoint}/version", headers=headers)
    except DependencyFailed:
        return ""
    return str(reply.body.get("version", ""))[:80] if reply.status == 200 else ""


def _key(app: App, subject: Subject) -> str:
    if subject.service:
        return server_key_of(app.settings, app.services, subject.service) or ""
    if not subject.key_name:
        return ""
    found = app.settings.service_api_keys.get(subject.key_name)
    if found is None:
        raise InputRejected(
            f"the server at {subject.endpoint} was not measured",
            why=f"SERVICE_API_KEYS has no key {subject.key_name!r}",
            hint=f"set it: SERVICE_API_KEYS={subject.key_name}=KEY",
        )
    return found.get_secret_value()


def _provenance(app: App, sweep: Sweep, driver: LoadDriver, server_version: str) -> Provenance:
    """Return the provenance of every cell; of a sweep that goes on the one with which it began."""
    installed, before, subject = driver.version(), sweep.provenance, sweep.subject
    if before is not None and (before.driver, before.driver_version) != (driver.name, installed):
        raise InputRejected(
            f"sweep {sweep.request.id!r} does not go on",
            why=f"it was begun with {before.driver} {before.driver_version}, and {driver.name} {installed} is here",
            hint="take the same --driver, or another --out",
        )
    if before is not None and server_version and before.vllm and before.vllm != server_version:
        raise InputRejected(
            f"sweep {sweep.request.id!r} does not go on",
            why=f"it was begun against vLLM {before.vllm}, and {server_version} serves now",
            hint="measure it again with another --out",
        )
    shared = {name: getattr(subject, name) for name in Subject.model_fields if name in Provenance.model_fields}
    return before or Provenance(
        **(shared | {"vllm": server_version or subject.vllm}),
        sweep=sweep.request.id,
        driver=driver.name,
        driver_version=installed,
        seed=sweep.seed,
        ignore_eos=sweep.ignore_eos,
        started_at=app.clock.now(),
        agent_version=version(DISTRIBUTION),
    )
