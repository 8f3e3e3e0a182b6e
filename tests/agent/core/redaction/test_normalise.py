"""What a text shows: colours, invisible letters, escapes and line wraps hide nothing, and every place is known."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.catalogue.load_secrets import load_secrets
from agent.core.redaction import Redactor
from agent.core.redaction.normalise import Normaliser
from agent.core.redaction.scan import compiled
from agent.core.redaction.spans import Span
from tests.counts import tries

REDACTOR = Redactor(load_secrets())
NORMALISER = Normaliser(compiled)
SECRET = "Zq3Xv9Kd7Rm2Wp8Ht5"


def deepest(text):
    return NORMALISER.views(text.encode("utf-8", "surrogatepass"))[-1].data.decode("utf-8", "replace")


DISGUISED = {
    "colours": f"\x1b[36mdb_password \x1b[0m= \x1b[35m{SECRET}\x1b[0m",
    "colours inside the name": f"db_\x1b[1mpass\x1b[0mword={SECRET}",
    "colours inside the value": f"db_password={SECRET[:6]}\x1b[1;36m{SECRET[6:9]}\x1b[0m{SECRET[9:]}",
    "C1 control sequence": f"db_password\u009b0m=\u009b35m{SECRET}",
    "title of a terminal": f"db_pass\x1b]0;x\x07word={SECRET}",
    "link of a terminal": f"db_password=\x1b]8;;x:\x1b\\{SECRET}\x1b]8;;\x1b\\",
    "zero-width in the name": f"db_pass\u200bword={SECRET}",
    "zero-width in the value": f"db_password={SECRET[:9]}\u200b\u200d{SECRET[9:]}",
    "soft hyphen": f"db_pass\u00adword={SECRET}",
    "byte-order mark": f"db_password=\ufeff{SECRET}",
    "bidirectional marks": f"db_password\u202e=\u2066{SECRET}\u2069",
    "variation selector": f"db_pass\ufe0eword={SECRET}",
    "tag letters": f"db_pass\U000e0041word={SECRET}",
    "control": f"db_pass\x00\x08word={SECRET}",
    "JSON": json.dumps({"message": f'db_password="{SECRET}"'}),
    "JSON in JSON in JSON": json.dumps(json.dumps(json.dumps({"m": f"db_password='{SECRET}'"}))),
    "JSON with every letter escaped": "".join(f"\\u{ord(sign):04x}" for sign in f"db_password={SECRET}"),
    "colours escaped in JSON": json.dumps(f"\x1b[36mdb_password\x1b[0m=\x1b[35m{SECRET}\x1b[0m"),
    "colours as bytes are shown": f"b'\\x1b[36mdb_password\\x1b[0m=\\x1b[35m{SECRET}\\x1b[0m'",
    "invisible letters as we show them": f"db_pass\\u{{200b}}word={SECRET}",
    "colours in octal": f"\\033[36mdb_password\\033[0m=\\033[35m{SECRET}\\033[0m",
    "URL": f"db%5Fpassword%3D{SECRET}",
    "URL in a URL": f"next=%2Flogin%3Fdb%255Fpassword%253D{SECRET}",
    "URL with every letter": "".join(f"%{ord(sign):02X}" for sign in f"db_password={SECRET}"),
    "login in an encoded URL": f"callback=https%3A%2F%2Fbot%3A{SECRET}%40host.example%2Frepo",
    "netrc": f"machine db.example login app password {SECRET}",
    "netrc in lines": f"machine db.example\n  login app\n  password {SECRET}",
    "netrc default": f"default login app password {SECRET}",
    "mysqldump": f"+ mysqldump -u root -p{SECRET} --all-databases",
    "mysqldump as a list": f"Popen(['mysqldump', '-h', 'db', '-p{SECRET}'])",
    "sshpass": f"sshpass -p {SECRET} ssh host",
    "docker login": f"docker login -u bot -p {SECRET} registry.example",
    "mongodump": f"mongodump --host h -u a -p '{SECRET}'",
    "redis-cli": f"redis-cli -h h -a {SECRET} ping",
    "openssl": f"openssl rsa -in k -passin pass:{SECRET}",
}  # fmt: skip


@pytest.mark.parametrize("how", DISGUISED)
def test_a_disguised_secret_is_taken_out(how):
    """Alone, and as one of many entries."""
    text = DISGUISED[how]
    rows = REDACTOR.redact_lines(["first", text, "last"]).lines
    for clean in (REDACTOR.redact(text).text, "\n".join(rows)):
        assert "[redacted:" in clean
        views = NORMALISER.views(clean.encode()) or []
        for shown in (clean, *(view.data.decode("utf-8", "replace") for view in views)):
            assert not any(SECRET[at : at + 6] in shown for at in range(len(SECRET) - 5)), shown


@pytest.mark.parametrize("how", DISGUISED)
def test_redacting_a_disguised_secret_twice_changes_nothing(how):
    once = REDACTOR.redact(DISGUISED[how]).text
    assert REDACTOR.redact(once).text == once


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("before", [10, 47, 63, 75, 90])
def test_a_secret_that_a_terminal_wrapped_is_taken_out_of_both_lines(width, before):
    token = "hf" + "_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3f"
    text = ("x" * before + " token " + token + " was refused by the hub, and the server ends now " * 2).rstrip()
    wrapped = "\n".join(text[at : at + width] for at in range(0, len(text), width))
    for clean in (REDACTOR.redact(wrapped).text, "\n".join(REDACTOR.redact_lines(wrapped.split("\n")).lines)):
        flat = clean.replace("\n", "")
        assert not any(token[at : at + 12] in flat for at in range(len(token) - 11)), clean


def test_a_line_that_hides_nothing_is_read_once():
    """The fast path: no view is made, so the text is scanned as it was before."""
    assert NORMALISER.views("INFO 11-22 10:00:00 [core.py:12] ready, 12.5% of é ⠋ used | ok → done".encode()) == []


def test_the_deepest_view_is_what_people_see():
    assert deepest("\x1b[1;31mE\u200bR\x1b[0mR %41 \\u0042 \\\\u0043 \\n") == "ERR A B C \n"


def test_ordinary_escapes_are_left_as_they_came():
    text = 'C:\\new\\table "a\\nb" 50%ab \x1b[32mINFO\x1b[0m \u200bready'
    assert REDACTOR.redact(text).text == text


@settings(max_examples=tries(40, ci=200, soak=200), deadline=None)
@given(st.lists(st.sampled_from(["a", "é", "\x1b[1m", "\u200b", "\\u0041", "\\\\n", "%41", '\\"', "\\", "\n", " "])))
def test_every_place_of_a_view_maps_into_the_text(parts):
    """Each byte of a view comes from a stretch of the text, in order, and single letters from themselves."""
    data = "".join(parts).encode()
    for view in NORMALISER.views(data):
        ends = 0
        for at in range(len(view.data)):
            raw = view.raw(Span(start=at, end=at + 1, kind="x", rank=0, since=at))
            assert 0 <= raw.start < raw.end <= len(data)
            assert raw.end >= ends
            ends = raw.end
            if raw.end - raw.start == 1:
                assert data[raw.start : raw.end] == view.data[at : at + 1]


@settings(max_examples=tries(30, ci=150, soak=150), deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "\x1b[36m",
                "\x1b[0m",
                "\u200b",
                "\\u003d",
                "%3D",
                "\\n",
                "\n",
                "password",
                "=",
                "token: ",
                " ",
                "\\",
                '"',
                "hf" + "_" + "aB3" * 12,
                "x9K2m7Qv4Rt8Lp3W",
                "[redacted:x]",
                "Authorization: Bearer ",
                "://u:pw12@h",
            ]
        ),
        max_size=14,
    )
)
def test_any_disguise_comes_to_rest(parts):
    once = REDACTOR.redact("".join(parts)).text
    assert REDACTOR.redact(once).text == once
