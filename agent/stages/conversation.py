"""The conversation with the model: one question, at most one more, one checked answer or none."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from agent.core.diagnosis.diagnosis import Evidence, ModelExplanation
from agent.core.diagnosis.evidence_pack import EvidencePack, Line, ModelInput, build_pack, fence_mark, rules_summary
from agent.core.diagnosis.model_answer import EarlierLog, FitOf, LinesAround, ModelAnswer, answer_schema, read_answer
from agent.core.diagnosis.model_request import ModelUse, Spend
from agent.core.diagnosis.rules_and_model import prose
from agent.core.text.safe_text import plain
from agent.core.value import canonical
from agent.errors import ModelMisbehaved
from agent.failures.match.matcher import Matcher
from agent.ports.model import Model, NoAnswer, Question, Reply

EVIDENCE_BYTES = 3_000  # of the first question
ALL_BYTES = 12_400  # of both questions together: 5 % of what a peer sends for one incident (253 kB)
FRAME_BYTES = 400  # of a request besides prompt and schema: model, limits, roles
SMALLEST_EVIDENCE = 600  # bytes; with less room a second question is not worth its seconds
SHORTER = (0.6, 0.35)
AROUND = 6  # lines before and after the one that the model asked about

_MAY_ASK = (
    'Only if a decisive piece is missing, ask for it in "more": lines around an id, the log of the revision that '
    "served before, or whether another context length or share would fit. You are asked once more with the result."
)
_MAY_NOT_ASK = "There is no more evidence than this."


@dataclass(frozen=True, kw_only=True)
class Lookups:
    """What a model may be shown on request; every one only reads.

    Attributes:
        fit: Says whether the present configuration fits with another context length or share.
        earlier: The log of the revision that served before, redacted.
    """

    fit: Callable[[FitOf], str]
    earlier: Callable[[], tuple[str, ...]]


NOTHING = Spend()
NOTHING_MORE = Lookups(fit=lambda _: "", earlier=tuple)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What the conversation is about.

    Attributes:
        cap: What it may cost at most.
    """

    case: ModelInput
    platform: str
    patient: str
    may_wake: bool
    cap: Spend
    reach: Lookups = NOTHING_MORE


@dataclass(frozen=True, kw_only=True)
class ModelReply:
    """What came of it.

    Attributes:
        word: None where there was no usable answer.
        why: Why there is none.
        again: Whether asking again in a minute may help.
        misbehaved: Answers that could not be used.
    """

    word: ModelExplanation | None
    lines: tuple[Evidence, ...] = ()
    spent: Spend = NOTHING
    why: str = ""
    again: bool = False
    misbehaved: int = 0


@dataclass(frozen=True, kw_only=True)
class _Turn:
    question: Question
    packs: tuple[EvidencePack, ...]
    may_ask: bool

    @property
    def bytes(self) -> int:
        sent = [self.question.system, self.question.user, self.question.answer_schema]
        return len(canonical(sent[:2])) + len(sent[2]) + FRAME_BYTES


@dataclass(frozen=True, kw_only=True)
class _Said:
    answer: ModelAnswer
    reply: Reply
    pack: EvidencePack


class Conversation:
    """One conversation; make one for each.

    Args:
        model: Whom to ask.
        use: How.
        matcher: The compiled catalogue.
        redact: Takes secrets out of whatever is sent or kept.
    """

    def __init__(self, model: Model, use: ModelUse, *, matcher: Matcher, redact: Callable[[str], str]) -> None:
        self._model = model
        self._use = use
        self._matcher = matcher
        self._redact = redact
        self._spent = Spend()
        self._misbehaved = 0

    def about(self, subject: Subject) -> ModelReply:
        """Ask once, and once more where the model wants evidence or answered wrongly; a valid answer is never lost."""
        first = self._turn(subject, subject.case, limit=EVIDENCE_BYTES, may_ask=self._use.may_ask)
        try:
            said = self._ask(first)
        except NoAnswer as error:
            return self._none(error.why, again=error.again)
        except ModelMisbehaved as error:
            return self._once_more(subject, first, error)
        if not said.answer.more:
            return self._reply_of(said)
        second = self._second(subject, first, _wanted(said, subject))
        if second is None:
            return self._reply_of(said)
        try:
            return self._reply_of(self._ask(second))
        except (NoAnswer, ModelMisbehaved):
            return self._reply_of(said)

    def _once_more(self, subject: Subject, first: _Turn, error: ModelMisbehaved) -> ModelReply:
        corrected = replace(subject.case, facts=(("your last answer was not used", error.why), *subject.case.facts))
        second = self._second(subject, first, (corrected, ()))
        if second is None:
            return self._none(error.why)
        try:
            return self._reply_of(self._ask(second))
        except NoAnswer as none:
            return self._none(f"{error.why}; then {none.why}")
        except ModelMisbehaved as again:
            return self._none(f"{error.why}; and again: {again.why}")

    def _second(self, subject: Subject, first: _Turn, case: tuple[ModelInput, tuple[int, ...]]) -> _Turn | None:
        """Return the second question, or None where bytes, tokens, calls or seconds leave no room for it."""
        left = subject.cap.minus(self._spent)
        bare = self._turn(subject, ModelInput(rules=case[0].rules, story=()), limit=SMALLEST_EVIDENCE, may_ask=False)
        room = min(EVIDENCE_BYTES, ALL_BYTES - first.bytes - bare.bytes - 30 * 8)
        if room < SMALLEST_EVIDENCE or left.calls < 1 or left.seconds < 1:
            return None
        return self._turn(subject, case[0], limit=room, may_ask=False, asked_for=case[1])

    def _turn(
        self, subject: Subject, case: ModelInput, *, limit: int, may_ask: bool, asked_for: tuple[int, ...] = ()
    ) -> _Turn:
        limits = [limit, *(int(limit * share) for share in SHORTER)]
        packs = tuple(build_pack(case, self._matcher, limit=one, asked_for=asked_for) for one in limits)
        left = subject.cap.minus(self._spent)
        texts = [self._filled(case, pack, subject.platform, may_ask=may_ask) for pack in packs]
        question = Question(
            system=texts[0][0],
            user=texts[0][1],
            shorter=tuple(user for _, user in texts[1:]),
            answer_schema=answer_schema(self._use.classes, packs[0].ids, may_ask=may_ask),
            prompt=self._use.prompt.label,
            patient=subject.patient,
            may_wake=subject.may_wake,
            limit_calls=max(1, left.calls),
            limit_tokens=left.tokens,
            limit_s=max(0.001, left.seconds),
        )
        return _Turn(question=question, packs=packs, may_ask=may_ask)

    def _filled(self, case: ModelInput, pack: EvidencePack, platform: str, *, may_ask: bool) -> tuple[str, str]:
        evidence = self._redact(pack.evidence)
        return self._use.prompt.fill(
            asking=_MAY_ASK if may_ask else _MAY_NOT_ASK,
            situation=rules_summary(case.rules, platform=platform),
            evidence=evidence,
            fence=fence_mark(evidence),
        )

    def _ask(self, turn: _Turn) -> _Said:
        try:
            reply = self._model.ask(turn.question)
        except NoAnswer as error:
            self._spent = self._spent.plus(error.spent)
            raise
        self._spent = self._spent.plus(reply.spent)
        pack = turn.packs[min(max(reply.used, 0), len(turn.packs) - 1)]
        try:
            answer = read_answer(
                reply.text, finished=reply.finished, classes=self._use.classes, ids=pack.ids, may_ask=turn.may_ask
            )
        except ModelMisbehaved:
            self._misbehaved += 1
            self._model.judged(reply, usable=False)
            raise
        self._model.judged(reply, usable=True)
        return _Said(answer=answer, reply=reply, pack=pack)

    def _reply_of(self, said: _Said) -> ModelReply:
        lines = said.pack.cited(said.answer.cited)
        word = ModelExplanation(
            class_=said.answer.class_,
            root_cause=prose(self._redact(said.answer.root_cause)),
            cited=tuple(line.signal for line in lines),
            unknown=tuple(prose(self._redact(text), limit=200) for text in said.answer.unknown if text.strip()),
            prompt=self._use.prompt.label,
            model=plain(said.reply.model, limit=120),
            tokens=self._spent.tokens,
            took_s=self._spent.seconds,
        )
        return ModelReply(word=word, lines=lines, spent=self._spent, misbehaved=self._misbehaved)

    def _none(self, why: str, *, again: bool = False) -> ModelReply:
        return ModelReply(word=None, spent=self._spent, why=why, again=again, misbehaved=self._misbehaved)


def _wanted(said: _Said, subject: Subject) -> tuple[ModelInput, tuple[int, ...]]:
    """Fetch what the model asked for: a case with more facts and lines, and which lines come first."""
    case = subject.case
    facts: list[tuple[str, str]] = []
    earlier: tuple[str, ...] = ()
    indices: list[int] = []
    at = {line.id: line.index for line in said.pack.lines}
    for request in said.answer.more:
        match request:
            case LinesAround(id=one):
                indices += [at[one] + step for step in sorted(range(-AROUND, AROUND + 1), key=abs)]
            case FitOf():
                facts.append((_fit_name(request), subject.reach.fit(request) or "not computed"))
            case EarlierLog():
                earlier = subject.reach.earlier()[-12:]
                if not earlier:
                    facts.append(("log of the revision before", "there is none to read"))
    before = tuple(Line(ref=f"earlier:{n}", text=text) for n, text in enumerate(earlier, start=1))
    shifted = [index + len(before) for index in indices]
    story = (*before, *case.story)
    known = [index for index in shifted if len(before) <= index < len(story)]
    wider = replace(case, story=story, facts=(*facts, *case.facts))
    return wider, (*known, *range(len(before)))


def _fit_name(request: FitOf) -> str:
    if request.max_model_len is not None:
        return f"fit with max_model_len {request.max_model_len}"
    return f"fit with gpu_memory_utilization {request.gpu_memory_utilization}"
