"""How good are answers against labels: by class, with intervals, and what changed since another run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

NOT_CORE = "reconstructed_from_description"


@dataclass(frozen=True, kw_only=True)
class Label:
    """The truth about one record.

    Attributes:
        classes: The right class first, then those that count as right.
        fixes: The right fix action first, then those that count as right.
        core: The record belongs to the clean core: an LLM workload, not reconstructed, confidence not low.
    """

    id: str
    classes: tuple[str, ...]
    fixes: tuple[str, ...]
    core: bool


@dataclass(frozen=True, kw_only=True)
class EvalAnswer:
    """What was answered for one record, the first fix action alone."""

    id: str
    class_: str
    signature: str | None
    confidence: float
    certain: bool
    fix: str


@dataclass(frozen=True, kw_only=True)
class Share:
    """Right answers out of all, with the Wilson interval at 95 %."""

    right: int
    total: int

    @property
    def share(self) -> float | None:
        """0..1, None for nothing asked."""
        return self.right / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson score interval for z = 1.96 (E. B. Wilson, 1927), None for nothing asked."""
        if not self.total:
            return None
        z, n = 1.96, self.total
        p = self.right / n
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, middle - half), min(1.0, middle + half)


def label_of(row: Mapping[str, object], id_: str) -> Label:
    """Read the label of a corpus row; keys as in incidents-dev.jsonl, missing ones count as core and empty."""
    return Label(
        id=id_,
        classes=(str(row.get("class", "")), *_texts(row.get("also_acceptable_class"))),
        fixes=tuple(text for text in (*_texts(row.get("fix_action")), *_texts(row.get("also_acceptable"))) if text),
        core=row.get("vllm_workload") is not False
        and row.get("log_form") != NOT_CORE
        and row.get("confidence") != "low",
    )


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def same_fix(answer: str, wanted: str) -> bool:
    """Whether two fix actions agree; where one of them names a flag without direction, the flag decides."""
    if answer == wanted:
        return True
    first, second = answer.split(), wanted.split()
    bare = len(first) == 2 or len(second) == 2
    return bool(first) and first[0] == "set_flag" and bare and first[:2] == second[:2]


def report(labels: Sequence[Label], answers: Sequence[EvalAnswer]) -> dict[str, object]:
    """Compare answers with labels, record by record in the same order.

    Returns:
        JSON-ready: ``all`` and ``core`` (class, fix, each with right, total, share, interval), ``by_class``,
        ``confusions`` (most frequent first), ``benign_false_alarms``, ``certain`` (accuracy of certain answers),
        ``unknown`` and ``records``.
    """
    pairs = list(zip(labels, answers, strict=True))
    core = [pair for pair in pairs if pair[0].core]
    wrong = Counter((label.classes[0], answer.class_) for label, answer in pairs if not _class_right(label, answer))
    by_class = {
        name: _json(Share(right=sum(_class_right(*pair) for pair in of), total=len(of)))
        for name in sorted({label.classes[0] for label in labels})
        if (of := [pair for pair in pairs if pair[0].classes[0] == name])
    }
    return {
        "all": _figures(pairs),
        "core": _figures(core),
        "certain": _json(
            Share(
                right=sum(_class_right(*pair) for pair in pairs if pair[1].certain),
                total=sum(answer.certain for answer in answers),
            )
        ),
        "unknown": sum(answer.class_ == "unknown" for answer in answers),
        "benign_false_alarms": [
            answer.id
            for label, answer in pairs
            if label.classes[0] == "benign" and not _class_right(label, answer) and answer.class_ != "unknown"
        ],
        "by_class": by_class,
        "confusions": [{"class": a, "answer": b, "records": n} for (a, b), n in wrong.most_common()],
        "records": [_record(label, answer) for label, answer in pairs],
    }


def changes(before: Mapping[str, object], now: Mapping[str, object]) -> list[dict[str, object]]:
    """Records whose class, fix or rightness differs between two reports, in the order of the later one."""
    old = {row["id"]: row for row in _rows(before)}
    found: list[dict[str, object]] = []
    for row in _rows(now):
        was = old.get(row["id"])
        if was is None or any(was.get(key) != row.get(key) for key in ("answer", "fix", "class_right", "fix_right")):
            found.append({"id": row["id"], "before": was, "now": row})
    return found


def _rows(of: Mapping[str, object]) -> list[dict[str, object]]:
    rows = of.get("records")
    return [row for row in rows if isinstance(row, dict) and "id" in row] if isinstance(rows, list) else []


def _class_right(label: Label, answer: EvalAnswer) -> bool:
    return answer.class_ in label.classes


def _fix_right(label: Label, answer: EvalAnswer) -> bool:
    return any(same_fix(answer.fix, fix) for fix in label.fixes)


def _figures(pairs: Sequence[tuple[Label, EvalAnswer]]) -> dict[str, object]:
    fixed = [pair for pair in pairs if pair[0].fixes]
    return {
        "class": _json(Share(right=sum(_class_right(*pair) for pair in pairs), total=len(pairs))),
        "fix": _json(Share(right=sum(_fix_right(*pair) for pair in fixed), total=len(fixed))),
    }


def _json(share: Share) -> dict[str, object]:
    low_high = share.interval
    return {
        "right": share.right,
        "total": share.total,
        "share": None if share.share is None else round(share.share, 4),
        "interval_95": None if low_high is None else [round(end, 4) for end in low_high],
    }


def _record(label: Label, answer: EvalAnswer) -> dict[str, object]:
    return {
        "id": answer.id,
        "class": label.classes[0],
        "answer": answer.class_,
        "signature": answer.signature,
        "confidence": answer.confidence,
        "fix": answer.fix,
        "class_right": _class_right(label, answer),
        "fix_right": _fix_right(label, answer),
        "core": label.core,
    }
