"""Whether the command line could decide: where `decide` is, whether it asks for a token, and what it says to ours."""

from collections.abc import Iterator

from agent.app.channels import operator_token
from agent.app.outgoing import ask, decide_client
from agent.entrypoints.cli.doctor.finding import Finding, bad, good, off, unknown
from agent.entrypoints.http.authenticator import TOKEN_HEADER
from agent.errors import DependencyFailed, SreError
from agent.ports.json_probe import LIMIT_S
from agent.settings import Settings

PLACE = "/kill-switch"  # the smallest thing that only approvers may read


def deciding(settings: Settings) -> Iterator[Finding]:
    """Ask how the kill switch stands: first as nobody, then as the operator; nothing is changed.

    Raises:
        DependencyFailed: `decide` does not answer.
    """
    if settings.decide_url is None:
        if settings.embedded:
            yield off("decide", "decisions are recorded by the files of this machine")
        else:
            says = "DECIDE_URL is unset: approve, reject, stop, incidents and audit have nowhere to go"
            yield unknown("decide", says, "set it to the output decide_url of infra/")
        return
    status = ask(f"{settings.decide_url}{PLACE}").status
    if status == 401:
        yield good("decide", "answers, and wants to know who asks")
    else:
        yield bad("decide", f"said {status} to nobody, want 401", "is DECIDE_URL the address of `decide`?")
        return
    try:
        token = operator_token(settings)
    except DependencyFailed as error:
        yield unknown("decide-as-you", error.why, error.hint)
        return
    try:
        decide_client(settings.decide_url, timeout_s=LIMIT_S).get(PLACE, headers={TOKEN_HEADER: token})
    except SreError as error:
        yield bad("decide-as-you", error.why, error.hint)
    else:
        yield good("decide-as-you", "takes your word: you are an approver")
