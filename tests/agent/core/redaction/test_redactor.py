"""Secrets never leave: found whole, replaced for good, and nothing else is touched."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.catalogue.load_secrets import load_secrets
from agent.core.redaction import Redactor
from tests.counts import tries

REDACTOR = Redactor(load_secrets())
DATA = Path(__file__).parents[3] / "data"

KINDS = [
    *[
        "google-api-key",
        "google-oauth-token",
        "jwt",
        "huggingface-token",
        "openai-key",
        "aws-access-key-id",
        "gitlab-token",
    ],
    *[f"slack-token/{kind}" for kind in ("xb", "xp", "xa", "xr", "xs", "xe")],
    *[f"github-token/{kind}" for kind in "pousr"],
    *[
        "github-fine-grained-token",
        "private-key/lines",
        "private-key/json",
        "private-key/json in json",
        "private-key/no end",
    ],
    *[
        "private-key/no begin",
        "url-password",
        "url-password/database",
        "authorization-header/bearer",
        "authorization-header/basic",
    ],
    *["authorization-header/json", "authorization-header/python", "authorization-header/short", "credential/flag"],
    *["credential/args", "credential/environment", "credential/json", "random-value"],
]


def left_of(secret: str, text: str, at_least: int = 8) -> bool:
    """Whether any run of the secret still stands in the text."""
    run = min(at_least, len(secret))
    return any(secret[start : start + run] in text for start in range(len(secret) - run + 1))


def test_every_kind_met_is_listed(met):
    assert set(met) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_secret_of_a_kind_met_here_is_taken_out_whole(met, kind):
    text, secret = met[kind]
    redacted = REDACTOR.redact(text)
    assert not left_of(secret, redacted.text)
    assert redacted.found
    assert "[redacted:" in redacted.text


@pytest.mark.parametrize("kind", KINDS)
def test_text_around_a_secret_stays(met, kind):
    text, secret = met[kind]
    words = re.findall(r"^\w+", text)
    assert REDACTOR.redact(f"before the line\n{text}\nafter the line").text.startswith("before the line\n")
    assert all(word in REDACTOR.redact(text).text for word in words if word not in secret)


@pytest.mark.parametrize("kind", KINDS)
def test_redacting_twice_changes_nothing(met, kind):
    once = REDACTOR.redact(met[kind][0])
    again = REDACTOR.redact(once.text)
    assert (again.text, again.found) == (once.text, ())


@pytest.mark.parametrize(
    "wrap",
    ["{}", '"{}"', "'{}'", "\\n{}\\n", "x={}&y=1", "\x1b[0m{}\x1b[0m", "<{}>", "é{}é", "({}),", "\\u003d{}", "%3D{}"],
)
@pytest.mark.parametrize("kind", KINDS[:18])
def test_surroundings_hide_no_token(met, kind, wrap):
    token = met[kind][1]
    assert not left_of(token, REDACTOR.redact(f"a {wrap.format(token)} b").text)


@pytest.mark.parametrize("kind", KINDS)
def test_secret_split_over_two_log_entries_is_found(met, kind):
    """Wherever the cut is, no run of sixteen letters stays; a weak name must stand whole in the entry of its value."""
    if kind in {"authorization-header/short", "credential/flag", "private-key/no begin"}:
        pytest.skip("too short, or without a beginning: halves say nothing")
    text, secret = met[kind]
    start = text.index(secret)
    short = len(secret) < 16
    cuts = (
        range(start - 1, start)
        if short
        else range(start if kind == "random-value" else start - 4, start + min(len(secret), 200), 3)
    )
    for cut in cuts:
        entries = ["first entry", text[:cut], text[cut:], "last entry"]
        redacted = REDACTOR.redact_lines(entries)
        assert len(redacted.lines) == 4
        assert redacted.lines[0] == "first entry"
        assert redacted.lines[3] == "last entry"
        assert not left_of(secret, redacted.lines[1] + "\0" + redacted.lines[2], 16), (cut - start, redacted.lines)


def test_whole_token_at_the_end_of_an_entry_leaves_the_next_entry_alone(met):
    token = met["huggingface-token"][1]
    redacted = REDACTOR.redact_lines([f"using {token}", "INFO 11-21 core.py:133 ready"])
    assert redacted.lines == ("using [redacted:huggingface-token]", "INFO 11-21 core.py:133 ready")


def test_findings_say_which_entry_and_what(met):
    redacted = REDACTOR.redact_lines(["a", met["google-api-key"][0], "b"])
    assert [(each.index, each.kind) for each in redacted.found] == [(1, "google-api-key")]


def test_entries_together_give_what_each_gives_alone(met):
    entries = [text for kind, (text, _) in met.items() if kind != "private-key/no begin"]  # would close the open one
    spaced = [part for entry in entries for part in (entry, "-- plain words --")]
    assert REDACTOR.redact_lines(spaced).lines == tuple(REDACTOR.redact(each).text for each in spaced)


def test_adjacent_tokens_both_go(met):
    token = met["huggingface-token"][1]
    other = met["google-api-key"][1]
    assert not left_of(other, REDACTOR.redact(f"{token}/{other}{token}").text)


@settings(max_examples=tries(30, ci=150, soak=150), deadline=None)
@given(
    st.lists(
        st.one_of(
            st.text(max_size=20),
            st.sampled_from(
                [
                    " ",
                    "=",
                    ":",
                    "token=",
                    "password: ",
                    "Authorization: Bearer ",
                    "[redacted:x]",
                    "[redacted:",
                    "]",
                    'key": "',
                    "\n",
                ]
            ),
            st.sampled_from(
                [
                    "hf" + "_" + "aB3" * 12,
                    "gh" + "p_" + "Zx9" * 12,
                    "AI" + "za" + "Qw7" * 12,
                    "x9K2m7Qv4Rt8Lp3W",
                    "://u:pw12" + "@h",
                ]
            ),
        ),
        max_size=14,
    )
)
def test_any_text_comes_to_rest(parts):
    """Redaction of a redacted text is the same text, whatever stands side by side."""
    once = REDACTOR.redact("".join(parts)).text
    assert REDACTOR.redact(once).text == once


@settings(max_examples=tries(20, ci=100, soak=100), deadline=None)
@given(st.lists(st.text(alphabet=st.characters(), max_size=40), max_size=6))
def test_any_unicode_survives(lines):
    text = "\n".join(lines) + "\ud800"
    assert REDACTOR.redact(text).text.endswith("\ud800")
    assert len(REDACTOR.redact_lines(lines).lines) == len(lines)


ORDINARY = [
    "revision vllm-gemma-00042-abc is ready, serving 100 percent",
    "image: us-docker.pkg.dev/p/r/vllm@sha256:" + "0123456789abcdef" * 4,
    '"insertId": "65f1a2b3000c1d2e3f4a5b6c", "trace": "projects/p/traces/0679686673a8b4c2d1e0f9a8b7c6d5e4"',
    "request 123e4567-e89b-12d3-a456-426614174000 took 1.2 s, key: 123e4567-e89b-12d3-a456-426614174000",
    "Using model google/gemma-4-31B-it-qat-w4a16-ct at revision 5f0b02c75b57c5855da9ae460ce51323ea669d8a",
    "tokenizer_revision=5f0b02c75b57c5855da9ae460ce51323ea669d8a, tokenizer='/srv/models/gemma-4-E4B-it'",
    "unsupported quant_key = kFp8Static128BlockSym, activation_key=kInt8DynamicTokenSym, api_key=tensorizer_config.s3_access",
    "KeyError: 'model.layers.0.mlp.experts.w13_weight'",
    'Missing key(s) in state_dict: "model.language_model.layers.11.self_attn.q_proj.weight_packed"',
    "Avg generation throughput: 1234.5 tokens/s, Running: 3 reqs, GPU KV cache usage: 12.3%, Prefix cache hit rate: 0.0%",
    "bos_token_id=2, eos_token_id=[1, 106], pad_token='<pad>', max_tokens=4096, token=None, api_key=None",
    "torch_compile_cache key: 0b2a4f6c8e, /root/.cache/vllm/torch_compile_cache/0b2a4f6c8e/rank_0_0/backbone",
    "CUDA_VISIBLE_DEVICES=GPU-8a56a4bc-e184-a047-2620-be19fdf913d5 NVIDIA_REQUIRE_CUDA=cuda>=12.8",
    "usage: vllm serve [--api-key API_KEY [API_KEY ...]] [--hf-token [HF_TOKEN]] [--tokenizer-mode {auto,slow}]",
    "api_key=os.environ['VLLM_API_KEY'], password=self.password, secret=${SECRET}, token=<your-token>, api_key: '***'",
    "http://0.0.0.0:8000/v1/chat/completions https://huggingface.co/google/gemma-4-31B-it/resolve/main/config.json",
    "serviceAccount: vllm@my-project.iam.gserviceaccount.com, user:admin@example.com, authenticationInfo: principalEmail",
    "Access to model google/gemma-4-31B-it is restricted. You must have access to it and be authenticated to access it.",
    'File "/usr/local/lib/python3.12/dist-packages/vllm/v1/engine/core_client.py", line 487, in __init__',
    "pod vllm-gemma-7d9f8b6c5d-x2k4p: Back-off restarting failed container, api: vllm-gemma-7d9f8b6c5d-x2k4p",
    "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:01<00:01,  1.25s/it]|####      |",
    "linear_key_head_dim=128, linear_attention: layers.Gemma4ForConditionalGeneration, cohere: Cohere2VisionForConditionalGeneration",
    'auth: 10.128.0.15:51234 - "GET /health HTTP/1.1" 200 OK 2026-11-21T10:23:45.123456Z',
]


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_line_passes_unchanged(line):
    assert REDACTOR.redact(line).text == line


def test_recorded_vllm_logs_pass_unchanged():
    for path in sorted((DATA / "vllm-cpu-logs").iterdir()):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert REDACTOR.redact_lines(lines).lines == tuple(lines), path.name


def test_published_payloads_lose_only_their_test_secrets():
    found = [
        (path.name, each.kind)
        for path in sorted((DATA / "samples").glob("*.json"))
        for each in REDACTOR.redact_lines(path.read_text().splitlines()).found
    ]
    assert found == [
        ("slack_interactivity_http.json", "random-value"),
        ("standard_webhook_http.json", "standard-webhook-secret"),
    ]


def test_recorded_incidents_pass_unchanged(shared):
    for row in map(json.loads, (shared / "incidents-dev.jsonl").read_text().splitlines()):
        assert REDACTOR.redact(row["log"]).text == row["log"], row["id"]


HOSTILE = [
    "eyJ",
    "://a:",
    "-----begin private key-----",
    "token=",
    "kind: secret data: a: b\n",
    "curl -u ",
    "password='",
    "linear=",
    "authorization: ",
]


@pytest.mark.slow
@pytest.mark.timeout(20)
@pytest.mark.parametrize("seed", HOSTILE)
def test_hostile_repetition_comes_to_an_end(seed):
    """A prefilter hit every few letters costs a bounded factor; work that grew with the square would take minutes here."""
    assert REDACTOR.redact((seed * 400_000)[:400_000]).text
