"""This machine as a place: servers that we start here, or one that somebody else starts and whose log we follow."""

import fcntl
import json
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from agent.adapters.logs.host import Follower, HostLogs, StartLog
from agent.adapters.platform.host.describe import cards_here, config_of, name_of, version_of
from agent.adapters.platform.host.fixed_server import FixedServer, check_restart
from agent.adapters.platform.host.health_check import HealthCheck
from agent.adapters.platform.host.platform import HostPlatform
from agent.adapters.platform.host.probe import address_of
from agent.adapters.platform.host.process import memory_mib
from agent.adapters.platform.host.server import HostServer
from agent.adapters.platform.host.state_file import StateFile
from agent.adapters.platform.rehearsal.template import template_of
from agent.app.catalogues import HOST_SERVICES, host_folder, host_services, read_services
from agent.app.model_profiles import known_models
from agent.core.service.container_args import served_model
from agent.core.service.services import Service, parse_services
from agent.core.service.serving import ServingConfig
from agent.errors import InputRejected, SreError, StateConflict
from agent.ports.clock import Clock
from agent.ports.host import HostCheck, LogFollower, Stage
from agent.settings import Settings, inherited


def host_logs(platform: HostPlatform) -> HostLogs:
    """Return the logs of the servers of this machine."""

    def starts(service: str) -> tuple[StartLog, ...]:
        return tuple(
            StartLog(
                revision=start.revision,
                instance=start.mark,
                began_at=start.began_at,
                path=platform.log_path(service, start),
                first_byte=platform.first_byte(service, start),
            )
            for start in platform.recordings(service)
        )

    return HostLogs(starts)


def host_platform(settings: Settings, clock: Clock) -> HostPlatform:
    """Return the platform: with our own servers, or (where a log file is named) with somebody else's."""
    if settings.follow_log is None:
        return HostPlatform(host_folder(settings), clock, inherited(), server=HostServer)
    check_restart(settings.restart_command)
    fixed = partial(FixedServer, log=settings.follow_log, restart=settings.restart_command)
    return HostPlatform(host_folder(settings), clock, inherited(), server=fixed)


def started_elsewhere(settings: Settings, service: str) -> bool:
    """Whether a server that has not ended is somebody else's, whose log is followed; nothing on record changes.

    Raises:
        DependencyFailed: The record cannot be read, so nobody knows.
    """
    folder = host_folder(settings) / service
    state = StateFile(folder).read()
    if state is None or state.newest is None or state.newest.stage is Stage.ENDED:
        return False
    begun = [start for start in state.starts if start.stage is not Stage.WAITING]
    return bool(begun) and not HostServer(folder, {}).was_called(begun[-1])


def is_begun(settings: Settings, service: str) -> bool:
    """Whether a server of that name was begun here and its end was not seen: it is taken over, not started.

    Raises:
        DependencyFailed: The record cannot be read, so nobody knows.
    """
    state = StateFile(host_folder(settings) / service).read()
    return state is not None and state.newest is not None and state.newest.stage is not Stage.ENDED


def service_at(settings: Settings, port: int) -> str | None:
    """Return which watched server of this machine listens on a port, as its record says; None where none does.

    Raises:
        DependencyFailed: A record cannot be read, so nobody knows.
    """
    for record in sorted(host_folder(settings).glob(f"*/{StateFile.NAME}")):
        state = StateFile(record.parent).read()
        if state is None or state.gone:
            continue
        if address_of(template_of(state.template).config, inherited()).port == port:
            return record.parent.name
    return None


def open_follower(path: Path, *, offset: int, ours: bool) -> LogFollower:
    """Return what reads on in a server's log.

    Args:
        path: The file that the server writes to; it may not exist yet.
        offset: Where to go on, bytes.
        ours: Whether the file is ours to keep small.
    """
    return Follower(path, offset=offset, punch=ours)


def open_check(platform: HostPlatform, clock: Clock) -> HostCheck:
    """Return what checks a server of this machine while it serves."""
    return HealthCheck(platform, clock)


@contextmanager
def only_watcher(settings: Settings, service: str) -> Iterator[None]:
    """Be the one watcher of a service until the end; the kernel gives the place back whichever way we end.

    Raises:
        StateConflict: Another one watches it.
    """
    folder = host_folder(settings) / service
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "watcher.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StateConflict(
                f"the server {service!r} is not watched twice",
                why="another watcher holds it",
                hint="use that watcher, or choose another name: sre-agent watch --name NAME -- ...",
            ) from error
        yield


def config_from_args(words: Sequence[str], *, model: str | None = None) -> ServingConfig:
    """Return the configuration that a command line means on this machine.

    Args:
        words: The operator's words.
        model: What it serves, where the words do not say; then one word, such as a script, is enough.
    """
    from agent.catalogue.load_fit import load_fit_catalogue

    config = config_of(
        tuple(words), inherited(), cards_here(), load_fit_catalogue().accelerators, fewest=1 if model else 2
    )
    return with_machine_memory(config)


def with_machine_memory(config: ServingConfig) -> ServingConfig:
    """Return a configuration with this machine's memory: a plan that pins host memory must know how much there is."""
    return config.with_(memory_mib=memory_mib())


def wanted_name(config: ServingConfig, name: str | None, *, model: str | None = None) -> str:
    """Return the name of the service that a server is written down as.

    Raises:
        InputRejected: Neither the command nor ``model`` names a model, or they differ.
    """
    return name or name_of(config, _model_word(config, model))


def add_service(settings: Settings, config: ServingConfig, name: str | None, *, model: str | None = None) -> Service:
    """Write a server down as a service to be watched, and read its checkpoint where it lies here.

    What ``SERVICES`` says of a service of that name holds: its needs, its owner, its version.

    Raises:
        InputRejected: The command names no model, or the name cannot be a service's.
    """
    word = _model_word(config, model)
    wanted = name or name_of(config, word)
    given = read_services(settings).watched(wanted) if settings.services is not None else None
    if given is None:
        local = Path(word).is_dir()
        given = parse_services(
            {
                "service": [
                    {
                        "name": wanted,
                        "platform": "host",
                        "model": Path(word).resolve().name if local else word,
                        "checkpoint": str(Path(word).resolve()) if local else None,
                        "accelerator": config.accelerator or "cpu",
                        "accelerator_count": config.accelerator_count,
                        "vllm": version_of(config.command[0]),
                        "owner": "console",
                    }
                ]
            }
        ).services[0]
    _keep(settings, given)
    _read_checkpoint(settings, word)
    return given


def _model_word(config: ServingConfig, model: str | None) -> str:
    word = served_model(config.command, config.args)
    if word is not None and model is not None and model != word:
        raise InputRejected(
            "the server is not watched",
            why=f"--model says {model!r} and the command says {word!r}",
            hint="remove --model; it is for a command that does not name its model",
        )
    word = word or model
    if word is None:
        raise InputRejected(
            "the server is not watched",
            why="the command names no model",
            hint="run: sre-agent watch -- vllm serve MODEL, or name it: sre-agent watch --model MODEL -- ./serve.sh",
        )
    return word


def _keep(settings: Settings, service: Service) -> None:
    folder = host_folder(settings)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    known = [s for s in host_services(settings).services if s.name != service.name]
    text = "# Written by sre-agent watch: the servers that were started on this machine.\n" + "\n".join(
        _toml(s) for s in (*known, service)
    )
    tomllib.loads(text)
    fresh = folder / f"{HOST_SERVICES}.tmp"
    fresh.write_text(text)
    fresh.rename(folder / HOST_SERVICES)


def _toml(service: Service) -> str:
    """A service as a table; values are JSON strings and numbers, which TOML reads alike."""
    data = service.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    needs = data.pop("needs", {})
    rows = [f"{key} = {json.dumps(value)}" for key, value in data.items() if not isinstance(value, dict)]
    tables = [f"{key} = {{ {', '.join(f'{json.dumps(k)} = {json.dumps(v)}' for k, v in value.items())} }}"
              for key, value in data.items() if isinstance(value, dict) and value]  # fmt: skip
    more = ["[service.needs]", *(f"{key} = {json.dumps(value)}" for key, value in needs.items())] if needs else []
    return "\n".join(["[[service]]", *rows, *tables, *more]) + "\n"


def _read_checkpoint(settings: Settings, word: str) -> None:
    """Keep the figures of the checkpoint itself; one that cannot be read is no reason to stop."""
    if not (Path(word) / "config.json").is_file():
        return
    from agent.catalogue.load_fit import load_fit_catalogue

    place = str(Path(word).resolve())
    try:
        known_models(load_fit_catalogue().models, settings).add(place, as_name=Path(place).name)
    except SreError:
        return
