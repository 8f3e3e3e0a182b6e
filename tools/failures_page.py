"""The page docs/failures.md, written from the failure catalogue by this module run as a program."""

import sys
from collections.abc import Iterable

from agent.catalogue.load_failures import FailureCatalogue, Rank, load_failures
from agent.failures.signature import FailureClass, Phase, Role, Signature

MOST_PHRASES = 6

HEAD = """# What can break, and what to do

Written from `agent/catalogue/failures/*.toml`; change the entries, then write this page again with
`python -m tools.failures_page > docs/failures.md`.

A text is searched for the phrases of all signatures at once. Of several signatures in one text a cause comes before a
consequence, then the higher rank, then the earlier line. Where a class depends on how far the server had come,
the phase decides. Words without a known text (hints) speak only where nothing better does. Nothing found is `unknown`.
How good it is on texts nobody tuned to: [accuracy.md](accuracy.md).
"""


WORDS = """Any program tells in such words how it is. A text in which somebody is `down` and is not `well` again
below is never harmless, and a note in which something went `wrong` is not either. A program that says that it is `up`
is harmless where no line speaks of any trouble, `doubtful` or not. The phrases stand in
`agent/catalogue/failures/words.toml`."""


def render(catalogue: FailureCatalogue) -> str:
    """The whole page as Markdown."""
    parts = [HEAD, _contents(catalogue), _ranks(catalogue)]
    parts += [_class_section(class_, catalogue) for class_ in FailureClass if class_ in catalogue.classes]
    parts.append(_words(catalogue))
    return "\n".join(parts)


def _words(catalogue: FailureCatalogue) -> str:
    """What lines prove that no signature knows."""
    rows = [f"| {group.says} | {group.proves} | {len(group.phrases)} |" for group in catalogue.words]
    head = [
        "## Words of what no signature knows",
        "",
        WORDS,
        "",
        "| says | what it proves | phrases |",
        "|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])


def _ranks(catalogue: FailureCatalogue) -> str:
    def place(item: tuple[str, Rank]) -> tuple[int, int]:
        return min(list(Role).index(role) for role in item[1].roles), -item[1].precedence

    ranked = sorted(catalogue.ranks.items(), key=place)
    rows = [f"| {rank.precedence} | {name} | {', '.join(sorted(rank.roles))} | {rank.why} |" for name, rank in ranked]
    return "\n".join(["| rank | name | role | what is true of its entries |", "|---|---|---|---|", *rows, ""])


def _contents(catalogue: FailureCatalogue) -> str:
    rows = [
        f"| [{class_}](#{class_}) | {catalogue.classes[class_].what} | {len(_of(class_, catalogue))} |"
        for class_ in FailureClass
        if class_ in catalogue.classes
    ]
    return "\n".join(["| class | what it is | signatures |", "|---|---|---|", *rows, ""])


def _class_section(class_: FailureClass, catalogue: FailureCatalogue) -> str:
    words = catalogue.classes[class_]
    lines = [
        f"## {class_}",
        "",
        words.what,
        "",
        f"**Recognise it:** {words.recognise}",
        "",
        f"**Do:** {words.hint} (`{'`, `'.join(words.fixes)}`)",
        "",
    ]
    for signature in _of(class_, catalogue):
        lines += _signature(signature)
    return "\n".join(lines)


def _of(class_: FailureClass, catalogue: FailureCatalogue) -> list[Signature]:
    """Signatures that can give the class; phase markers are no failures."""
    found = [
        signature
        for signature in catalogue.signatures
        if signature.role is not Role.PHASE
        and class_ in {signature.failure_class, *signature.class_by_phase.values(), *signature.becomes}
    ]
    return sorted(found, key=lambda signature: (list(Role).index(signature.role), -signature.precedence, signature.id))


def _signature(signature: Signature) -> list[str]:
    facts = [str(signature.role), f"rank {signature.precedence}", f"confidence {signature.confidence}"]
    if signature.phase is not Phase.UNKNOWN:
        facts.append(f"phase {signature.phase}")
    if signature.class_by_phase:
        facts.append("class by phase")
    if signature.needs_silence:
        facts.append("only in a whole log without any other trouble")
    if signature.platforms:
        facts.append(", ".join(signature.platforms))
    lines = [f"### {signature.id}: {signature.title}", "", f"*{'; '.join(facts)}*", ""]
    lines += [line for text in (signature.what, signature.recognise) if text for line in (text, "")]
    lines += [f"- {_code(phrase)}" for phrase in signature.phrases[:MOST_PHRASES]]
    if len(signature.phrases) > MOST_PHRASES:
        lines.append(f"- and {len(signature.phrases) - MOST_PHRASES} more")
    lines.append("")
    if signature.hint:
        lines += [f"**Do:** {signature.hint}", ""]
    if signature.fixes and signature.role is not Role.BENIGN:
        lines += [f"Fix actions: {_list(signature.fixes)}", ""]
    if signature.fields:
        lines += [f"Fields: {_list(signature.fields)}", ""]
    lines += [f"<sub>{signature.source}; {signature.date}</sub>", ""]
    return lines


def _list(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _code(phrase: str) -> str:
    return f"`` {phrase} ``" if "`" in phrase else f"`{phrase}`"


if __name__ == "__main__":
    sys.stdout.write(render(load_failures()))
