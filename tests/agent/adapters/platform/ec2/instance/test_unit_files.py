"""What a unit's files mean, read as systemd reads them."""

import pytest

from agent.adapters.platform.ec2.drop_in import bare, drop_in
from agent.adapters.platform.ec2.instance.unit_files import Files, split_words
from agent.adapters.platform.host.describe import HIDDEN
from agent.errors import InputRejected
from agent.ports.platform import Order

ORDER = Order(service="gemma", incident="inc-1", effect_key="k1", revision="gemma-sre-k1", etag="e", actions=())


def files(tmp_path, text, *, env="", ours=None):
    unit, env_file = tmp_path / "vllm.service", tmp_path / "vllm.env"
    env_file.write_text(env)
    unit.write_text(text.replace("ENV", str(env_file)))
    if ours is not None:
        (tmp_path / "vllm.service.d").mkdir()
        (tmp_path / "vllm.service.d" / "zz-sre-agent.conf").write_text(ours)
    said = {"FragmentPath": str(unit), "DropInPaths": ""}
    return Files(said, {"folder": str(tmp_path), "unit": "vllm.service", "hidden": HIDDEN})


def test_variables_are_filled_in_and_secrets_stay_references(tmp_path):
    """A whole word is split, a part is not; a word that names a secret is kept as it is."""
    text = "[Service]\nEnvironmentFile=-ENV\nExecStart=/opt/vllm serve ${MODEL} $FLAGS --api-key ${VLLM_API_KEY} --cost $$5\n"
    env = '# a comment\nMODEL="/srv/my model"\nFLAGS=--max-model-len 4096 --enforce-eager\nVLLM_API_KEY=sk-1\n'
    found = files(tmp_path, text, env=env)
    assert found.words == [
        "/opt/vllm", "serve", "/srv/my model", "--max-model-len", "4096", "--enforce-eager", "--api-key",
        "${VLLM_API_KEY}", "--cost", "$5",
    ]  # fmt: skip
    assert found.refs == ["${VLLM_API_KEY}"]
    assert ["VLLM_API_KEY", None] in found.shown_env
    assert "sk-1" not in str(found.shown_env) + str(found.words)


def test_a_later_file_counts_and_an_empty_value_begins_anew(tmp_path):
    """As systemd reads drop-ins; lines are joined, comments skipped, other sections are none of it."""
    text = "[Unit]\nExecStart=/no\n[Service]\n# ExecStart=/no\nExecStart=/opt/vllm serve m \\\n  --port 8001\n"
    assert files(tmp_path, text).words == ["/opt/vllm", "serve", "m", "--port", "8001"]
    found = files(tmp_path, text, ours="[Service]\nExecStart=\nExecStart=/opt/vllm serve other\n")
    assert found.words == ["/opt/vllm", "serve", "other"]


@pytest.mark.parametrize(
    ("start", "why"),
    [
        ("ExecStart=/opt/vllm serve %i\n", "specifiers"),
        ("ExecStart=@/opt/vllm vllm serve m\n", "begins with '@'"),
        ("ExecStart=/opt/a\nExecStart=/opt/b\n", "2 ExecStart"),
        ("", "0 ExecStart"),
        ("ExecStart=-\n", "is empty"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path, start, why):
    """Doubt is never taken for a configuration."""
    assert why in files(tmp_path, f"[Service]\n{start}").unread


def test_a_change_of_any_file_of_the_operator_is_seen(tmp_path):
    """Of the environment file too; ours is left out."""
    text = "[Service]\nEnvironmentFile=ENV\nExecStart=/opt/vllm serve m\n"
    first = files(tmp_path, text, env="A=1\n").others
    assert files(tmp_path, text, env="A=2\n").others != first
    assert files(tmp_path, text + "Nice=5\n", env="A=1\n").others != first
    assert files(tmp_path, text, env="A=1\n", ours="[Service]\nNice=1\n").others == first


WORDS = [
    ("/opt/vllm", "serve", "m"),
    ("a b", 'say "x"', "back\\slash", "100%", "$HOME", "semi;colon", "--x=', '", "", "{}", "`id`", "$(id)"),
    ("--chat-template-content-format", '{"a": [1, "b\\n"]}', "ü"),
]


@pytest.mark.parametrize("words", WORDS, ids=["plain", "hostile", "json"])
def test_what_is_written_is_what_is_read(tmp_path, words):
    """Every word comes back, whatever it holds, and nothing else does."""
    text = drop_in(("/opt/vllm", *words), frozenset(), ORDER)
    assert files(tmp_path, "[Service]\nExecStart=/no\n", ours=text).words == ["/opt/vllm", *words]


@pytest.mark.parametrize("word", ["a\nExecStartPre=/bin/sh", "\x00", "\x1b[0m"])
def test_a_word_that_would_begin_another_setting_is_refused(word):
    """A unit is lines: none may be made by a value."""
    with pytest.raises(InputRejected, match="cannot stand in a unit"):
        drop_in(("/opt/vllm", word), frozenset(), ORDER)


def test_our_notes_do_not_count(tmp_path):
    """Two effects of one content are one content."""
    other = ORDER.with_(effect_key="k2", revision="gemma-sre-k2")
    assert bare(drop_in(("/a", "b"), frozenset(), ORDER)) == bare(drop_in(("/a", "b"), frozenset(), other))
    assert bare(None) is None


def test_quotes_and_escapes_are_those_of_systemd():
    """From systemd.service(5), "Command lines"."""
    assert split_words(r"""/bin/echo "one two" 'three "four"' five\ six a"b c"d """) == [
        "/bin/echo", "one two", 'three "four"', "five six", "ab cd",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "words", ["/usr/bin/env HF_TOKEN=hf_1 vllm serve m", "docker run -e HF_TOKEN=hf_1 vllm/vllm m"]
)
def test_a_secret_that_is_written_out_stays_on_the_instance(tmp_path, words):
    found = files(tmp_path, f"[Service]\nExecStart={words}\n")
    assert "holds the value of HF_TOKEN" in found.unread
    assert "hf_1" not in str(found.words)
