"""A form that was posted: whether it is our own, who sent it, and the page that says why it was not taken."""

from flask import request

from agent.core.decision.decision import Person
from agent.entrypoints.console import answer_result, forms, guard
from agent.entrypoints.console.answer_result import Result
from agent.entrypoints.console.page_context import PageContext
from agent.entrypoints.console.permission import may_not_operate
from agent.errors import DependencyFailed, PolicyRefused, SreError
from agent.presentation.phase_words import Tone

TOKEN_FIELD = "kubernetes_token"  # noqa: S105 - a field's name


def form_token(console: PageContext, cookie: str, form: str, about: str, person: Person) -> str:
    """Return the token of a form: good for this browser, this person, this form and what it is about."""
    return forms.token(console.form_key, cookie=cookie, plan=form, plan_digest=about, who=person.who)


def form_refusal(console: PageContext, person: Person, form: str, about: str, *, made_for: str = "form") -> str:
    """Return why this post is not our own form for this thing, person and browser, or nothing."""
    foreign = forms.foreign_post(request.headers, console.origin)
    if foreign:
        return foreign
    cookie = request.cookies.get(forms.COOKIE, "")
    if not cookie or not forms.same(request.form.get("token", ""), form_token(console, cookie, form, about, person)):
        return f"the page was made for another browser, person or {made_for}, or is too old"
    return ""


def speaker_of(console: PageContext, person: Person) -> Person:
    """Return who speaks with a form: who asks, or whom the token in it belongs to; still nameless where it has none.

    Raises:
        InputRejected: The token proves nothing.
        DependencyFailed: The cluster could not be asked.
    """
    if not person.who and console.name_of is not None and guard.is_private(console.origin):
        return console.name_of(request.form.get(TOKEN_FIELD, "").strip())
    return person


def operator_of(console: PageContext, person: Person) -> Person:
    """Return who operates the installation with a form: who asks, or whom the token in it belongs to.

    Raises:
        PolicyRefused: Nothing proves who it is, or the policy names them for nothing.
        InputRejected: The token proves nothing.
        DependencyFailed: The cluster could not be asked.
    """
    person = speaker_of(console, person)
    barred = may_not_operate(console.context, person)
    if barred:
        raise PolicyRefused(
            "nothing was done", why=barred, hint="ask an approver, or have yourself added to policy.toml"
        )
    return person


def refused(why: str, hint: str, *, words: tuple[str, str], status: int = 403) -> Result:
    """Return the page of a form that was not taken; ``words`` are its label and title."""
    label, title = words
    return Result(
        status=status,
        label=label,
        title=title,
        says=f"{why[:1].upper()}{why[1:].rstrip('.')}. Nothing was stored or changed.",
        hint=hint,
        tone=Tone.BAD,
    )


def failed(error: SreError, *, words: tuple[str, str]) -> Result:
    """Return the page of a form that ended in an error; where a store did not answer, it may have been done."""
    if isinstance(error, DependencyFailed):
        return Result(
            status=503,
            label=words[0],
            title="It is not known whether it was done",
            says=f"{error.cause}.",
            hint="Look at the page again before you press once more.",
            tone=Tone.BAD,
        )
    hint = f"{error.hint[:1].upper()}{error.hint[1:]}."
    return refused(error.why, hint, words=words, status=answer_result.status_of(error))
