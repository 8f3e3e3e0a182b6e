"""Targets that are only told: each service over its own wire on loopback, guarded, and one process for real."""

import json
import time
from datetime import UTC, datetime
from urllib.parse import unquote

import pytest
import requests
from requests.adapters import HTTPAdapter

from agent.adapters.notifier.apprise import INSTALL, AppriseNotifier, is_installed, send_in_process
from agent.adapters.notifier.apprise_process import send
from agent.app.redaction import redact
from agent.core.diagnosis.diagnosis import Diagnosis, Evidence
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import Phase
from agent.errors import DependencyFailed
from agent.presentation.notify_target import HOSTS, read_targets
from tests.loopback import Loopback
from tests.outside import absent

pytestmark = pytest.mark.filterwarnings("ignore:.*imghdr.*:DeprecationWarning")  # apprise's own, at its import
NOW = datetime(2026, 11, 22, 3, 0, tzinfo=UTC)
TARGETS = {
    "workflows": "workflows://prod-161.westeurope.logic.azure.com:443/643e69f83c8944438d68119179a10a64/ABC123abc/",
    "gchat": "gchat://AAAAworkspace/keykeykey/tokentoken",
    "discord": "discord://417429632418316298/JHZ7lQml277CDHmQKMHI8qBe7bk2ZwO5UKjCiOAF7711o33MyqU344Qpgv7YTpadV_js",
    "wxteams": f"wxteams://{'a' * 80}",
    "tgram": "tgram://123456789:abcdefg_hijklmnop/12315544/",
    "pover": f"pover://{'a' * 30}@{'b' * 30}",
    "opsgenie": "opsgenie://a1b2c3d4-e5f6-7890-abcd-ef1234567890?region=eu",
    "signl4": "signl4://abcdefgh",
    "sendgrid": "sendgrid://abcdefghijklmno:sre@example.com/ops@example.org",
    "mailgun": f"mailgun://sre@mg.example.com/{'a' * 32}-bbbbbbbb-cccccccc/ops@example.org",
    "resend": "resend://abcdefghijklmno:sre@example.com/ops@example.org",
}


@pytest.fixture(autouse=True)
def _installed():
    if not is_installed():
        absent("apprise, the extra [notify]")


class Provider(Loopback):
    """Every provider on loopback: notes what came, and answers as it is told."""

    def __init__(self):
        self.got, self.status, self.location, self.hang_s = [], 200, None, 0.0
        super().__init__(self.answer, methods=["POST"])

    def answer(self, request):
        self.got.append((request.headers["x-host"], request.path, request.body.decode()))
        time.sleep(self.hang_s)
        return self.status, b'{"requestId": "1"}', {"location": self.location} if self.location else {}

    def adapter(self):
        port = self.port

        class Loopback(HTTPAdapter):
            def send(self, request, **given):
                _, _, rest = request.url.partition("://")
                host, _, path = rest.partition("/")
                request.headers["x-host"], request.url = host, f"http://127.0.0.1:{port}/{path}"
                return super().send(request, **given)

        return Loopback()


@pytest.fixture
def provider():
    made = Provider()
    yield made
    made.close()


def target(name, events=""):
    [made] = read_targets(f"t{events}={TARGETS[name]}")
    return made


def notifier(provider, name="gchat", events=""):
    return AppriseNotifier(
        target(name, events), redact=redact, console_url="https://sre.example.com",
        send=lambda order: send(order, adapter=provider.adapter),
    )  # fmt: skip


def incident(phase, **changes):
    times = {"opened_at": NOW, "phase_at": NOW, "quiet_since": NOW}
    return Incident(id="inc-a", service="gemma", platform="cloud_run", phase=phase, **(times | changes))


def timeline(*phases):
    return tuple(Event(at=NOW, phase=phase, what="x") for phase in phases)


def test_every_service_that_is_allowed_is_tested_here():
    assert set(TARGETS) == set(HOSTS)


@pytest.mark.parametrize("name", TARGETS)
def test_each_service_is_told_with_the_headline_and_the_link_at_its_own_host(provider, name):
    notifier(provider, name).tell(incident(Phase.DIAGNOSED), timeline(Phase.OPEN, Phase.DIAGNOSED), reference=None)
    [(host, _, body)] = provider.got
    assert any(host.partition(":")[0].endswith(allowed) for allowed in HOSTS[name])
    said = unquote(body).replace("+", " ").replace("&nbsp;", " ").replace("\\/", "/")
    assert "something is wrong" in said
    assert "https://sre.example.com/incidents/inc-a" in said


def test_only_the_chosen_events_are_told_and_each_once(provider):
    here, reference, seen = notifier(provider, events="[incident.resolved,incident.escalated]"), None, ()
    for phase in (Phase.OPEN, Phase.DIAGNOSED, Phase.ASKED, Phase.APPROVED, Phase.RESOLVED, Phase.RESOLVED):
        seen += timeline(phase)
        reference = here.tell(incident(phase), seen, reference=reference)
    assert len(provider.got) == 1
    assert reference == "6"


def test_a_target_that_was_down_is_told_the_present_state_once(provider):
    here = notifier(provider)
    whole = timeline(Phase.OPEN, Phase.DIAGNOSED, Phase.ASKED, Phase.RESOLVED)
    provider.status = 503
    with pytest.raises(DependencyFailed, match="answered with 503"):
        here.tell(incident(Phase.DIAGNOSED), whole[:2], reference=None)
    provider.status = 200
    here.tell(incident(Phase.RESOLVED), whole, reference=None)
    assert len(provider.got) == 2


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed(provider, status):
    provider.status, provider.location = status, "https://chat.googleapis.com/elsewhere"
    with pytest.raises(DependencyFailed, match=f"answered with {status}"):
        notifier(provider).tell(incident(Phase.DIAGNOSED), timeline(Phase.DIAGNOSED), reference=None)
    assert len(provider.got) == 1


def test_no_other_host_is_spoken_to_and_requests_is_as_before_afterwards(provider):
    plain = requests.sessions.Session
    order = {"url": TARGETS["gchat"], "title": "t", "body": "b", "type": "info", "hosts": ["discord.com"]}
    answer = send(order, adapter=provider.adapter)
    assert (answer["sent"], "refused" in answer["why"], provider.got) == (False, True, [])
    assert requests.sessions.Session is plain


def test_no_proxy_and_no_netrc_of_the_environment_is_used(provider, monkeypatch, tmp_path):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    (tmp_path / ".netrc").write_text("machine chat.googleapis.com login a password b\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    notifier(provider).tell(incident(Phase.DIAGNOSED), timeline(Phase.DIAGNOSED), reference=None)
    assert len(provider.got) == 1


def test_the_process_runs_alone_and_keeps_to_the_hosts_it_is_told():
    """The real one, started as it is in earnest; with no host allowed nothing leaves this machine."""
    order = {"url": TARGETS["gchat"], "title": "t", "body": "b", "type": "info", "hosts": []}
    assert send_in_process(order) == {"sent": False, "why": "another host than the provider's was refused"}


def test_secrets_links_and_mentions_of_a_log_do_not_leave(provider):
    line = "key hf_" + "Ab3" * 11 + "x https://evil.example @everyone <users/all> [press](x)"
    broken = Diagnosis(
        class_="unknown", signature=None, root_cause=line, confidence=1, certain=True, provisional=False,
        log_read=True, made_at=NOW, evidence=(Evidence(signal="s1", line=line),),
    )  # fmt: skip
    for name in ("discord", "gchat", "workflows", "tgram"):
        notifier(provider, name).tell(
            incident(Phase.DIAGNOSED, diagnosis=broken), timeline(Phase.DIAGNOSED), reference=None
        )
    sent = json.dumps(provider.got)
    for bad in ("hf_Ab3", "https://evil", "@everyone", "<users/all>", "](x)"):
        assert bad not in sent


def test_a_refusal_never_shows_the_address(provider):
    provider.status = 401
    with pytest.raises(DependencyFailed) as caught:
        notifier(provider).tell(incident(Phase.DIAGNOSED), timeline(Phase.DIAGNOSED), reference=None)
    assert str(caught.value).startswith("'t' was not notified: chat.googleapis.com answered with 401.")
    assert "tokentoken" not in str(caught.value)


def test_without_the_extra_it_says_what_to_install(provider, monkeypatch):
    monkeypatch.setattr("agent.adapters.notifier.apprise.is_installed", lambda: False)
    with pytest.raises(DependencyFailed) as caught:
        notifier(provider).send_test()
    assert caught.value.hint == INSTALL
