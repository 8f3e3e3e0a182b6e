"""How pages are made: templates that escape by default, and outside text that is made harmless wherever it stands."""

import hashlib
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from agent.app.redaction import redact
from agent.core.text.field_labels import field_label, figure
from agent.core.text.safe_text import inert, plain
from agent.presentation.evidence import place_of
from agent.presentation.impact_text import span
from agent.presentation.incident_title import trouble_words
from agent.presentation.measured import judgement_text
from agent.presentation.phase_words import label_of, tone_of
from agent.presentation.plan_cost import token_prices_text
from agent.presentation.plan_title import as_sentence
from agent.presentation.proof_text import PROOFS, memory_line, proof_lines
from agent.presentation.standing import ROLLOUTS, SOURCES, class_words, moment, owner_text

_STATIC = files("agent.entrypoints.console").joinpath("static")
STYLE = "".join(
    _STATIC.joinpath(name).read_text(encoding="utf-8") for name in ("console.css", "pages.css", "incident.css")
)
SCRIPT = _STATIC.joinpath("live.js").read_text(encoding="utf-8")
SCRIPT_PATH = f"/live-{hashlib.sha256(SCRIPT.encode()).hexdigest()[:12]}.js"
STYLE_PATH = f"/style-{hashlib.sha256(STYLE.encode()).hexdigest()[:12]}.css"
TEXT_LIMIT = 4000
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._@+-]{1,320}")


@cache
def make_pages() -> Environment:
    """Return the templates; whatever an expression gives is first made plain, then escaped, without being asked.

    One for the process: each template is compiled once.
    """
    pages = Environment(
        loader=PackageLoader("agent.entrypoints.console"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= {
        "utc": utc,
        "span": span,
        "since": since,
        "until": until,
        "usd": usd,
        "label": label_of,
        "tone": tone_of,
        "known_name": known_name,
        "class_words": class_words,
        "owner_text": owner_text,
        "trouble_words": trouble_words,
        "judgement": judgement_text,
        "field_label": field_label,
        "figure": figure,
        "sentence": as_sentence,
        "typed": typed,
        "own_link": own_link,
        "own_query": own_query,
    }
    pages.globals |= {"style_path": STYLE_PATH, "script_path": SCRIPT_PATH, "sources": SOURCES, "rollouts": ROLLOUTS}
    pages.globals |= {"proofs": PROOFS, "proof_lines": proof_lines, "place_of": place_of}
    pages.globals |= {"token_prices_text": token_prices_text, "memory_line": memory_line}
    return pages


def _harmless(value: object) -> object:
    """Redact and neutralise every expression's text; only what a template itself made is left as it is."""
    if isinstance(value, Markup):
        return value
    return "" if value is None else plain(redact(str(value)), limit=TEXT_LIMIT)


def typed(text: str) -> Markup:
    """Return what a person typed into a form, to stand in it again: without secrets and hidden characters."""
    lines = "\n".join(redact(line) for line in text.splitlines())  # each line of a form is a setting of its own
    return escape(inert(lines, limit=TEXT_LIMIT))


def utc(at: datetime) -> str:
    """Return an absolute time for people."""
    return moment(at.astimezone(UTC))


def known_name(name: str) -> object:
    """Return the asker's own name as it is where it is plain ASCII: an address of theirs need not be disarmed."""
    return Markup(name) if _PLAIN_NAME.fullmatch(name) else name  # noqa: S704 - the pattern lets no markup through


def own_link(address: str) -> Markup:
    """Return an address that the operator's own settings name, to be a link; nobody else's may be passed through it."""
    return escape(address)


def own_query(pairs: Iterable[tuple[str, str]]) -> Markup:
    """Return a query of our own pages as it has to be asked again: without secrets, and nothing in it disarmed."""
    return escape(urlencode([(name, redact(value)) for name, value in pairs]))


@pass_context
def since(context: Context, at: datetime) -> str:
    """Return how long ago something was."""
    seconds = (context["now"] - at).total_seconds()
    return "just now" if seconds < 1 else f"{span(seconds)} ago"


@pass_context
def until(context: Context, at: datetime) -> str:
    """Return how long it is until something, or that it is over."""
    seconds = (at - context["now"]).total_seconds()
    return f"in {span(seconds)}" if seconds > 0 else "over"


def usd(value: float | None) -> str:
    """Return a price per hour; unknown says so."""
    return "unknown" if value is None else f"{value:,.2f} USD/h"


def render(pages: Environment, name: str, **context: Any) -> str:
    """Return one page."""
    return pages.get_template(name).render(**context)
