"""sre-agent eval: accuracy against a labelled corpus, by class, with confusions, and against an earlier run."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.core.text.safe_text import terminal
from agent.entrypoints.cli.classified_records import ROW_LIMIT, ClassifyInput, finding_of, inputs_of
from agent.entrypoints.cli.records import files_of, progress_on, records_of_file
from agent.errors import InputRejected
from agent.failures.finding import Finding
from agent.strict_json import read_object

if TYPE_CHECKING:
    from agent.failures.match.matcher import Matcher

Classify = Callable[[ClassifyInput], Finding]


def configure(parser: argparse.ArgumentParser) -> None:
    """Name the arguments of the contract."""
    parser.add_argument(
        "corpus", help="JSON Lines with id, log, class and fix_action: a file, a folder, or - for standard input"
    )
    parser.add_argument(
        "--with",
        dest="which",
        choices=("rules", "model", "both"),
        default="rules",
        help="what classifies (default: rules)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--diff", metavar="PREVIOUS.json", help="compare with the --json output of an earlier run")


def run(args: argparse.Namespace) -> int:
    """Answer every labelled record and compare.

    Returns:
        0 when every row was answered, error rows too.

    Raises:
        InputRejected: The corpus or the earlier run cannot be read, or no row has a label.
        DependencyFailed: A model is asked for and none is configured.
    """
    from agent.catalogue.load_failures import load_failures
    from agent.failures.match.matcher import compile_catalogue
    from agent.failures.score import changes, report

    catalogue = load_failures()
    matcher = compile_catalogue(catalogue.signatures, catalogue.words)
    classify = _classifier(args.which, matcher)
    labels, answers, errors = [], [], []
    for record in _inputs(args.corpus, matcher):
        if record.error or not isinstance(record.row.get("class"), str):
            errors.append({"id": record.id, "error": record.error or "has no class"})
            continue
        labels.append(_label(record))
        answers.append(_answer(record, classify(record)))
    if not labels:
        raise InputRejected(
            f"{args.corpus!r} was not scored",
            why="no row has both a log and a class" + (f"; {errors[0]['error']}" if errors else ""),
            hint="give labelled JSON lines",
        )
    result = report(labels, answers)
    result["with"] = args.which
    cost = getattr(classify, "figures", None)
    if cost is not None:
        result["model"] = cost()
    result["errors"] = errors
    if args.diff:
        result["changes"] = changes(_previous(args.diff), result)
    print(json.dumps(result) if args.json else _for_people(result))
    sys.stdout.flush()
    return 0


def _inputs(corpus: str, matcher: "Matcher") -> Iterator[ClassifyInput]:
    show = progress_on(sys.stderr)
    for file in files_of(corpus):
        records = records_of_file(file, stdin=sys.stdin.buffer, record_limit=ROW_LIMIT, progress=show)
        yield from inputs_of(records, matcher=matcher)


def _classifier(which: str, matcher: "Matcher") -> Classify:
    """Rules alone, or what the model says."""
    if which != "rules":
        from agent.app.model_classifier import model_classifier

        return model_classifier(which)
    return lambda record: finding_of(record, matcher)


def _label(record: ClassifyInput) -> Any:
    from agent.failures.score import label_of

    return label_of(record.row, str(record.id))


def _answer(record: ClassifyInput, finding: Finding) -> Any:
    from agent.failures.score import EvalAnswer

    return EvalAnswer(
        id=str(record.id),
        class_=str(finding.class_),
        signature=finding.signature,
        confidence=round(finding.confidence, 3),
        certain=finding.certain,
        fix=finding.fix_actions[0] if finding.fix_actions else "",
    )


def _previous(path: str) -> Mapping[str, object]:
    try:
        before = read_object(Path(path).read_bytes(), what="report", limit=None)
    except (OSError, InputRejected) as error:
        why = error.why if isinstance(error, InputRejected) else str(error)
        raise InputRejected(f"{path!r} was not compared", why=why, hint="give the output of eval --json") from error
    return before


def _for_people(result: Mapping[str, Any]) -> str:
    lines = [_figures(part, result[part]) for part in ("core", "all")]
    lines.append(f"certain answers right {_share(result['certain'])}   unknown {result['unknown']}")
    alarms = result["benign_false_alarms"]
    lines.append(f"benign false alarms {len(alarms)} {' '.join(alarms)}".rstrip())
    lines.append("\nclass                        right  total")
    lines += [f"{name:<28} {row['right']:>5}  {row['total']:>5}" for name, row in result["by_class"].items()]
    if "model" in result:
        lines.append("\nmodel " + "  ".join(f"{name} {value}" for name, value in result["model"].items()))
    if result["confusions"]:
        lines.append("\nconfusions")
        lines += [f"{row['records']:>4}  {row['class']} taken for {row['answer']}" for row in result["confusions"]]
    lines += [_change(row) for row in result.get("changes", [])]
    lines += [f"not scored: {row['id']}: {row['error']}" for row in result["errors"]]
    return terminal("\n".join(lines), limit=1_000_000)


def _figures(part: str, figures: Mapping[str, Any]) -> str:
    return f"{part:<5} class {_share(figures['class'])}   fix {_share(figures['fix'])}"


def _change(row: Mapping[str, Any]) -> str:
    before, now = row["before"] or {}, row["now"]
    was, is_ = before.get("class_right"), now["class_right"]
    sign = "new" if was is None else "better" if is_ > was else "worse" if is_ < was else "other"
    moved = f"{before.get('answer', '-')} -> {now['answer']}, {before.get('fix', '-')} -> {now['fix']}"
    return f"{sign:<7}{row['id']}: {moved}"


def _share(row: Mapping[str, Any]) -> str:
    if not row["total"]:
        return "nothing to score"
    low, high = row["interval_95"]
    return f"{row['right']}/{row['total']} = {row['share']:.1%} [{low:.1%}, {high:.1%}]"
