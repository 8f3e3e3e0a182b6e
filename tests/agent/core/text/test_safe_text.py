"""Text of others cannot speak as us: no ping, no live link, no terminal sequence, nothing hidden."""

import html
import json
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.text.safe_text import chat, plain, shortened, slack_code, slack_mrkdwn, slack_plain, terminal
from tests.counts import tries
from tests.outside import shared

WAYS = [plain, terminal, slack_mrkdwn, slack_code, slack_plain, chat]
SLACK = [slack_mrkdwn, slack_code, slack_plain, chat]
BAD = [
    *[
        "<!channel>",
        "<!here|now>",
        "<@U012AB3CD>",
        "<#C123|general>",
        "<https://evil.example|our bank>",
        "<mailto:a@b.example|x>",
        "<!date^1^{date}|x>",
    ],
    *[
        "https://evil.example/a?b",
        "HTTP://EVIL.EXAMPLE",
        "ftp://x.example",
        "www.evil.com",
        "evil.com/pay",
        "//evil.com/x",
        "mailto:me@evil.com",
    ],
    *[
        "javascript:alert(1)",
        "\x1b[2J\x1b[31mred\x1b[0m",
        "\x1b]8;;https://evil.example\x07press\x1b]8;;\x07",
        "\x1b]52;c;Zm9v\x07",
        "\x9b31m",
        "a\rb\x08\x07\x00",
    ],
    *[
        "\x1b\x1b[31m[31mnested",
        "user\u202egpj.exe",
        "\u2066\u2069",
        "pass\u200bword\ufeff",
        "\u2028line",
        "tag\U000e0041\U000e007f",
        "\u3164\u2800",
        "z" + "\u0301" * 90,
    ],
    *[
        "@channel @here @everyone",
        "*bold* _it_ ~no~ `code` ```block```",
        "> quoted\n>>> more",
        ":white_check_mark: approved",
        "\ud800",
        "&lt;!channel&gt;",
    ],
]


def assert_safe(shown: str, *, slack: bool) -> None:
    assert not re.search(r"(?i)[a-z]://|\bwww\.|mailto:\S|javascript:\S", shown)
    for sign in shown:
        assert sign in "\n\t" or unicodedata.category(sign) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    shown.encode("utf-8")
    if slack:
        assert "<" not in shown
        assert ">" not in shown
        assert "@" not in shown


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("bad", BAD)
def test_bad_text_is_shown_and_does_nothing(way, bad):
    shown = way(f"before {bad} after")
    assert_safe(shown, slack=way in SLACK)
    assert "before" in shown
    assert "after" in shown


@pytest.mark.parametrize("bad", BAD)
def test_mrkdwn_keeps_no_markup(bad):
    shown = slack_mrkdwn(bad)
    assert not re.search(r"[*`~]|:[a-z_]+:|(?m:^\s*(?:>|&gt;))|(?:^|\s)_", shown)


@pytest.mark.parametrize("bad", [*BAD, "[press](evil)", "# heading", "<users/all>", "<at>all</at>", "&#64;here"])
def test_a_chat_is_given_no_markdown_and_no_tag(bad):
    shown = chat(bad)
    assert not re.search(r"[*`~@<>&]|\]\(|:[a-z_]+:|(?m:^\s*(?:>|#))|(?:^|\s)_", shown)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_ordinary_log_line_stays_readable(way):
    line = "(EngineCore_DP0 pid=276) ERROR 11-21 10:23:45 [core.py:133] torch.OutOfMemoryError: tried 2.62 GiB, __init__ in kv_cache_utils"
    shown = way(line)
    assert "ERROR 11-21 10:23:45 [core.py:133] torch.OutOfMemoryError: tried 2.62 GiB" in shown
    assert "kv_cache_utils" in shown


def test_code_block_cannot_be_closed_from_inside():
    shown = slack_code("a\n```\n<!channel> *now*")
    assert shown.count("```") == 2
    assert shown.startswith("```\n")
    assert shown.endswith("\n```")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@settings(max_examples=tries(12, ci=60, soak=60), deadline=None)
@given(
    st.lists(st.one_of(st.text(alphabet=st.characters(), max_size=12), st.sampled_from(BAD)), max_size=8),
    st.integers(16, 90),
)
def test_any_text_is_safe_and_within_its_limit(way, parts, limit):
    shown = way("".join(parts), limit=limit)
    assert_safe(shown, slack=way in SLACK)
    assert len(shown.encode("utf-16-le")) // 2 <= limit if way in SLACK else len(shown) <= limit


@pytest.mark.parametrize("limit", range(1, 40))
def test_cut_never_splits_an_entity_or_an_accent(limit):
    shown = slack_mrkdwn("<&>e\u0301👍🏽🇩🇪" * 5, limit=limit)
    assert re.fullmatch(r"(?:[^&]|&(?:amp|lt|gt);)*", shown)
    assert "\u0301" not in shown.replace("e\u0301", "")
    assert "🏽" not in shown.replace("👍🏽", "")
    assert shown.count("🇩") == shown.count("🇪")


def test_cut_is_said_and_an_exact_fit_is_not_cut():
    assert plain("abcdef", limit=6) == "abcdef"
    assert plain("abcdefg", limit=6) == "abcde…"
    assert terminal("a\nb\tc", lines=False) == "a\\nb\\tc"


def test_entities_of_the_text_are_shown_as_written():
    assert html.unescape(slack_mrkdwn("a &lt; b & c < d")) == "a &lt; b & c < d"


@pytest.mark.slow
@pytest.mark.timeout(20)
@pytest.mark.parametrize("bad", ["\x1b[", "\x1b]", "http:", "a.", "_", ">", ":a", "\u0301", "//", "x" * 9 + "."])
def test_hostile_repetition_comes_to_an_end(bad):
    assert len(slack_mrkdwn(bad * 300_000)) <= 3000
    assert len(plain(bad * 30_000, limit=50_000)) <= 50_000


@pytest.mark.shared
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_naughty_strings_and_injections_are_safe(way):
    corpora = shared("data", "corpora")
    texts = json.loads((corpora / "blns.json").read_text())
    texts += [row["user_input"] for row in json.loads((corpora / "cyberseceval_prompt_injection.json").read_text())]
    for text in texts:
        assert_safe(way(text), slack=way in SLACK)


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("fits", 10, "fits"),
        ("not measured: completion", 20, "not measured…"),
        ("one two three", 8, "one two…"),
        ("abcdefghijklmnop", 8, "abcdefg…"),
    ],
)
def test_a_shortened_text_ends_with_a_whole_word(text, limit, cut):
    assert shortened(text, limit) == cut
