"""Tools about models: which are known or lie in a bucket, whether each fits, and what one is made of."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

from mcp.server.mcpserver import Context
from pydantic import Field

from agent.entrypoints.mcp.tools.fit_tools import Model
from agent.entrypoints.mcp.tools.progress import Progress
from agent.entrypoints.mcp.tools.result import Result, one_line
from agent.errors import InputRejected, SreError
from agent.fit.question import ARGUMENTS, question_from

if TYPE_CHECKING:
    from agent.app.fit_answers import FitAnswers
    from agent.app.model_profiles import ReadCheckpoint
    from agent.fit.model_and_hardware import ModelFacts
    from agent.settings import Settings

Checkpoint = Annotated[
    str,
    Field(
        max_length=300,
        pattern=r"^(hf:[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*|gs://[a-z0-9][a-z0-9._-]*(/\w[\w.-]*)*/?)$",
        description="hf:ORGANISATION/NAME or gs://BUCKET/FOLDER",
    ),
]
Folder = Annotated[
    str | None,
    Field(
        max_length=300,
        pattern=r"^(gs://[a-z0-9][a-z0-9._-]*|/\w[\w.-]*)(/\w[\w.-]*)*/?$",
        description="gs://BUCKET, gs://BUCKET/FOLDER, or a path that a watched service mounts from a bucket",
    ),
]
Page = Annotated[int, Field(ge=0, description="next_offset of the page before")]

_PAGE: Final = 20  # verdicts: each takes some milliseconds
_READ: Final = 8  # checkpoints whose files are read for one page: each takes some requests


class ModelRow(Result):
    """One model; ``fits`` null where it cannot be told, or no accelerator was given."""

    name: str
    size: str | None
    quantisation: str | None
    checkpoint_bytes: int | None
    source: str
    fits: bool | None
    reason: str | None


class ModelList(Result):
    """A page of models."""

    models: list[ModelRow]
    next_offset: int | None


class ModelTools:
    """The tools about models.

    Args:
        open_answers: Reads the catalogues and added profiles; called per question, so that an added model is known.
        settings: Reads the settings.
        folders: Lists the folders of a bucket, with the credentials of whoever runs this.
        mounted: Says which place in a bucket a path of a watched service means, or None.
        read: Reads the checkpoint at a place, under a name, beside the bundled models.
        redact: Takes secrets out of a text.
    """

    def __init__(
        self,
        open_answers: "Callable[[], FitAnswers]",
        *,
        settings: "Callable[[], Settings]",
        folders: Callable[[str, str], Sequence[str]],
        mounted: Callable[[str], str | None],
        read: "ReadCheckpoint",
        redact: Callable[[str], str],
    ) -> None:
        self._open, self._settings = open_answers, settings
        self._folders, self._mounted, self._read, self._redact = folders, mounted, read, redact

    def list_models(
        self,
        context: Context,
        *,
        source: Folder = None,
        accelerator: Annotated[str | None, Field(max_length=80, description=ARGUMENTS["accelerator"])] = None,
        offset: Page = 0,
    ) -> ModelList:
        """List known models, or the checkpoints of a bucket or folder, each with whether it fits the accelerator."""
        from agent.app.model_profiles import known_models

        answers = self._open()
        if accelerator is not None:
            answers.catalogue.accelerator(accelerator)  # one typing error is one error, not one for each row
        if source is not None:
            return self._of_bucket(answers, source, accelerator, offset, Progress(context))
        settings = self._settings()
        bundled = answers.catalogue.models
        added = known_models(bundled, settings).added() if settings.embedded else ()
        sources = {profile.facts.name: profile.source for profile in added}
        names = [*sources, *(name for name in bundled.names if name not in sources)]
        page = names[offset : offset + _PAGE]
        rows = [_row(answers, answers.find_model(n), sources.get(n, "bundled"), accelerator) for n in page]
        return ModelList(models=rows, next_offset=_following(names, offset, len(page)))

    def model_details(self, model: Model) -> dict[str, Any]:
        """Describe what is known of a model: size, layers, quantisation, sources."""
        from agent.app.model_profiles import described

        return described(self._open().find_model(model), None)

    def add_model(
        self, source: Checkpoint, name: Annotated[str | None, Field(max_length=100, pattern=r"^[\w.-]+$")] = None
    ) -> dict[str, Any]:
        """Read a checkpoint's configuration and headers and keep its profile here, so that fit knows the model."""
        from agent.app.model_profiles import described, known_models, name_of

        known = known_models(self._open().catalogue.models, self._settings())
        profile = known.add(source, as_name=name or name_of(source))
        return described(profile.facts, profile)

    def _of_bucket(
        self, answers: "FitAnswers", source: str, accelerator: str | None, offset: int, progress: Progress
    ) -> ModelList:
        """Read the headers of the checkpoints of one page; what cannot be read is a row that says why."""
        from agent.app.model_profiles import name_of

        place = source if source.startswith("gs://") else self._mounted(source)
        if place is None or not place.startswith("gs://"):
            raise InputRejected(
                f"no model was listed in {source!r}",
                why="no watched service mounts a bucket there, and a client reads no files of this machine",
                hint="give gs://BUCKET/FOLDER; models of a folder here: sre-agent models add FOLDER",
            )
        bucket, _, folder = place.removeprefix("gs://").partition("/")
        places = self._folders(bucket, folder.strip("/"))
        page = places[offset : offset + _READ]
        rows: list[ModelRow] = []
        for each in progress.over(page, len(page), "checkpoint"):
            try:
                facts = self._read(each, name_of(each), answers.catalogue.models.entries).facts
                rows.append(_row(replace(answers, find_model=partial(_always, facts)), facts, each, accelerator))
            except SreError as error:
                rows.append(_unread(name_of(each), each, one_line(str(error), redact=self._redact)))
        return ModelList(models=rows, next_offset=_following(places, offset, len(page)))


def _always(facts: "ModelFacts", _name: str) -> "ModelFacts":
    return facts


def _row(answers: "FitAnswers", facts: "ModelFacts", source: str, accelerator: str | None) -> ModelRow:
    """One model with its verdict; a pair that cannot be computed is a row that says why."""
    fits: bool | None = None
    reason: str | None = None
    if accelerator is not None:
        try:
            report = answers.fit(question_from({"model": facts.name, "accelerator": accelerator}))
            fits, reason = report.fits, report.reason.value
        except SreError as error:
            reason = str(error)[:300]
    return ModelRow(
        name=facts.name,
        size=facts.size,
        quantisation=facts.quant.scheme,
        checkpoint_bytes=facts.checkpoint_bytes,
        source=source,
        fits=fits,
        reason=reason,
    )


def _unread(name: str, place: str, why: str) -> ModelRow:
    return ModelRow(name=name, size=None, quantisation=None, checkpoint_bytes=None, source=place, fits=None, reason=why)


def _following(rows: Sequence[Any], offset: int, shown: int) -> int | None:
    end = offset + shown
    return end if end < len(rows) else None
