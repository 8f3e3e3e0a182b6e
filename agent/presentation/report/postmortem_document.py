"""A postmortem in reading order: what happened first, then why, when, what was tried, what is left to do."""

from collections.abc import Iterator, Mapping
from typing import Final

from agent.presentation.impact_text import span
from agent.presentation.memory_bar import Bar, device_svg, device_text, memory_bar
from agent.presentation.report.document import Document, Link, Plot, Section, Table
from agent.presentation.report.postmortem import Memory, Postmortem, SummaryBy
from agent.presentation.standing import moment

_KINDS: Final[Mapping[str, str]] = {
    "finish": "Finish",
    "respond": "Respond",
    "prevent": "Prevent",
    "detect": "Detect",
}
METHOD: Final = (
    "Made from the incident's record; no sentence here comes from a model. Lines of logs are quoted without secrets, "
    "and links in them cannot be clicked. Correct what you know better, and give each action an owner and a date."
)
NOTHING_UNKNOWN: Final = "Nothing that mattered to the plan is recorded as unknown."
METHOD_MODEL: Final = (
    "The summary was worded by a model from sentences of the record, and is marked. Everything else was made from the "
    "record. Correct what you know better, and give each action an owner and a date."
)


def postmortem_document(draft: Postmortem) -> Document:
    """Return the draft as a document."""
    sections = (
        _first(draft),
        _impact(draft),
        *_cause(draft),
        Section(title="Timeline", table=_timeline(draft)),
        *_tried(draft),
        _fix(draft),
        *_memory(draft),
        Section(title="What was unknown", items=draft.unknown or (NOTHING_UNKNOWN,)),
        *_actions(draft),
        Section(
            title="How this draft was made",
            paragraphs=_method(draft),
        ),
    )
    return Document(title=f"Postmortem draft: {draft.title}", sections=sections)


def _method(draft: Postmortem) -> tuple[str, ...]:
    if draft.summary_by is SummaryBy.RECORD:
        return (METHOD,)
    own = (f"The summary in the record's own words: {' '.join(draft.record_summary)}",) if draft.record_summary else ()
    return (METHOD_MODEL, *own)


def _first(draft: Postmortem) -> Section:
    model = f" ({draft.summary_model})" if draft.summary_model else ""
    by_model = () if draft.summary_by is SummaryBy.RECORD else (f"Summary worded by a model{model}:",)
    return Section(
        paragraphs=(*draft.notes, *by_model, " ".join(draft.summary)),
        links=(Link(text=f"Incident {draft.incident} in the console", url=draft.url),) if "://" in draft.url else (),
    )


def _impact(draft: Postmortem) -> Section:
    times, cost = draft.times, draft.cost
    lasted = ((times.over_at or draft.made_at) - times.began_at).total_seconds()
    ended = moment(times.over_at) if times.over_at is not None else ("not seen" if draft.ended else "not yet")
    rows = [
        ("Service", draft.service + (f", revision {draft.revision}" if draft.revision else "")),
        ("Severity", f"{draft.severity}: {draft.impact}"),
        ("Detected", moment(times.detected_at) + _after(times.detect_s, "after the first sign")),
        ("Healthy again", ended),
    ]
    if times.detect_s is not None:
        rows.insert(2, ("Began", moment(times.began_at)))
    rows += [("Lasted", span(lasted))] if times.over_at is not None else []
    rows += [("Diagnosed", f"{span(times.diagnose_s)} after detection")] if times.diagnose_s is not None else []
    rows += [("Decided", f"{span(times.decide_s)} after a person was asked")] if times.decide_s is not None else []
    hours = f"{cost.gpu_hours:,.2f}. " if cost.gpu_hours is not None else ""
    rows.append(("Accelerator hours", f"{hours}{cost.basis}"))
    rows += [("Price of these hours", f"{cost.usd:,.2f} USD at the list price")] if cost.usd is not None else []
    rows += [("Follows", f"incident {draft.follows}")] if draft.follows else []
    return Section(title="Impact", table=Table(columns=("", ""), rows=tuple(rows), numbers=2))


def _after(seconds: float | None, what: str) -> str:
    return f", {span(seconds)} {what}" if seconds is not None else ""


def _cause(draft: Postmortem) -> Iterator[Section]:
    cause = draft.cause
    if cause is None:
        return
    sure = "This is certain" if cause.certain else "This is likely and not certain"
    rule = f", recognised by the rule {cause.signature}" if cause.signature else ""
    said = f"{sure} (source: {cause.source}). Its failure class is {cause.class_}{rule}."
    key = tuple(q for q in draft.evidence if q.decisive)
    where = (f"The key log line is {key[0].place}:",) if key else ()
    yield Section(title="Cause", paragraphs=(cause.root_cause, said, *where), quotes=tuple(q.line for q in key))
    if draft.figures:
        rows = tuple((f.name, f.value, f.source) for f in draft.figures)
        table = Table(columns=("Figure", "Value", "Read from"), rows=rows, numbers=3)
        yield Section(title="Figures from the log", table=table)
    others = tuple(q for q in draft.evidence if not q.decisive)
    if others:
        yield Section(title="Further evidence", quotes=tuple(f"[{q.place}] {q.line}" for q in others))


def _timeline(draft: Postmortem) -> Table:
    rows = tuple((f"{e.at:%Y-%m-%d %H:%M:%S}", e.says, e.by) for e in draft.timeline)
    return Table(columns=("Time (UTC)", "What happened", "By"), rows=rows, numbers=3)


def _tried(draft: Postmortem) -> Iterator[Section]:
    if not draft.tried:
        yield Section(title="What was tried", paragraphs=("Nothing: no plan was made.",))
    for number, plan in enumerate(draft.tried, start=1):
        title = "What was tried" if number == 1 else f"What was tried next ({number})"
        yield Section(title=title, paragraphs=(f"{plan.title} (plan {plan.plan})",), items=plan.steps)


def _fix(draft: Postmortem) -> Section:
    fix = draft.fix
    lost = (f"Trade-off: {fix.takes_away}.",) if fix.takes_away else ()
    changed = tuple(f"{s.path}: {_value(s.before)} -> {_value(s.after)}" for s in fix.settings)
    rows = tuple((c.check, c.judgement, c.says) for c in fix.checked)
    table = Table(columns=("Checked", "Result", "What was seen"), rows=rows, numbers=3) if rows else None
    return Section(title="What fixed it", paragraphs=(fix.says, *lost), items=changed, table=table)


def _value(value: str | None) -> str:
    return "(absent)" if value is None else value or "on"


def _memory(draft: Postmortem) -> Iterator[Section]:
    for memory in draft.memory:
        title = "Memory before the change" if memory.when == "before" else "Memory after the change"
        yield Section(title=title, paragraphs=(memory.says,), plots=tuple(_plots(memory)))


def _plots(memory: Memory) -> Iterator[Plot]:
    bar: Bar | None = memory_bar(memory.report)
    if bar is not None:
        yield Plot(name=f"memory-{memory.when}", title=bar.says, svg=device_svg(bar), text=device_text(bar))


def _actions(draft: Postmortem) -> Iterator[Section]:
    if draft.actions:
        rows = tuple((_KINDS.get(a.kind, a.kind), a.text, "") for a in draft.actions)
        yield Section(title="Action items", table=Table(columns=("Kind", "Action", "Owner"), rows=rows, numbers=3))
