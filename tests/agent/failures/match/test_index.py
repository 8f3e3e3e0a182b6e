"""The index: strongest first, vetoes mind case, implied phrases cost nothing."""

from dataclasses import replace

from agent.catalogue.load_failures import FailureCatalogue
from agent.failures.match.index import Index, compile_entry
from agent.failures.signature import FailureClass, Phase, Role, Signature


def signature(
    name: str,
    *phrases: str,
    role: Role = Role.CAUSE,
    precedence: int = 70,
    unless: tuple[str, ...] = (),
    whole_line: bool = False,
) -> Signature:
    return Signature(
        id=name, failure_class=FailureClass.HOST_OOM, class_by_phase={}, role=role, phrases=phrases, unless=unless,
        fields={}, fixes=("restart",), fixes_by_phase={}, precedence=precedence, title=name, source="test", date="2026-11-21",
        phase=Phase.UNKNOWN, whole_line=whole_line,
    )  # fmt: skip


def test_a_cause_comes_before_everything_else_and_then_precedence() -> None:
    entries = [
        signature("hint", "lamp", role=Role.HINT, precedence=99),
        signature("weak", "lamp", precedence=10),
        signature("strong", "lamp", precedence=20),
        signature("benign", "lamp", role=Role.BENIGN, precedence=90),
    ]
    index = Index([compile_entry(entry) for entry in entries])
    assert [one.entry.id for _, one in index.sightings(["the lamp"])] == ["strong", "weak", "benign", "hint"]
    assert [match.signature for _, match in index.strongest(["the lamp"])] == ["strong"]


def test_a_veto_minds_case_so_that_a_level_is_no_word() -> None:
    index = Index([compile_entry(signature("a", "lamp is out", unless=("INFO", "ship<*>sank")))])
    assert list(index.strongest(["INFO the lamp is out"])) == []
    assert list(index.strongest(["ship and lamp is out: it sank"])) == []
    assert [i for i, _ in index.strongest(["for your information: the LAMP is out"])] == [0]


def test_a_vetoed_level_is_one_however_a_logger_spells_it() -> None:
    index = Index([compile_entry(signature("a", "lamp is out", unless=("INFO",)))])
    notes = (
        "I0506 07:08:09.000000       1 lamp.go:7] the lamp is out",
        "[rank0]:[I506 07:08:09.123456 lamp.cpp:7] the lamp is out",
        'time="2031-05-06T07:08:09Z" level=info msg="the lamp is out"',
    )
    assert list(index.strongest(notes)) == []
    loud = (
        "E0506 07:08:09.000000       1 lamp.go:7] the lamp is out",
        "run again with log level=info: the lamp is out",
    )
    assert [i for i, _ in index.strongest(loud)] == [0, 1]


def test_a_phrase_that_another_implies_is_left_out() -> None:
    compiled = compile_entry(
        signature("a", "out of lamps", "Zork: out of lamps", "out of lamps<*>again", "other words")
    )
    assert [phrase.anchor for phrase in compiled.phrases] == [b"out of lamps", b"other words"]


def test_one_index_answers_the_same_however_full_its_memory_is(catalogue: FailureCatalogue) -> None:
    index = Index([compile_entry(entry) for entry in catalogue.signatures])
    phrases = [phrase.replace("<*>", " ") for entry in catalogue.signatures for phrase in entry.phrases]
    lines = [f"{a} and {b}" for a, b in zip(phrases, reversed(phrases), strict=True)]
    first = list(index.strongest(lines))
    index._memo.clear()
    assert list(index.strongest(lines)) == first


def test_a_phrase_that_must_be_the_whole_line_minds_only_what_a_log_writes_before_it() -> None:
    index = Index([compile_entry(signature("a", "lamp out", whole_line=True))])
    lines = ["Lamp out", "  lamp out  ", "house_1  | lamp out", "2031-05-06 07:08:09.1 lamp out", "[17] lamp out"]
    assert [i for i, _ in index.strongest(lines)] == [0, 1, 2, 3, 4]
    assert list(index.strongest(["the lamp out", "lamp out of oil", "lamp outside", "no | more | lamp out"])) == []


def test_a_line_that_is_claimed_as_harmless_holds_no_trouble_and_other_lines_do() -> None:
    claim = compile_entry(replace(signature("calm", "no harm done", role=Role.BENIGN), claims_line=True))
    index = Index([compile_entry(signature("a", "lamp is out")), claim], claims=[claim])
    failing = Index([compile_entry(signature("a", "lamp is out"))], claims=[claim])
    lines = ["lamp is out", "No harm done: lamp is out", "lamp is out, no harm done", "lamp is out"]
    assert [(i, one.entry.id) for i, one in index.sightings(lines)] == [(0, "a"), (1, "calm"), (2, "calm"), (3, "a")]
    assert [i for i, _ in failing.strongest(lines * 2)] == [0, 3, 4, 7]
