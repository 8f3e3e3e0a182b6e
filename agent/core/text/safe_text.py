"""Makes untrusted text safe to show: it cannot ping, link, mark up, move a cursor or hide characters."""

import re
import unicodedata
from collections.abc import Callable, Iterator

SLACK_LIMIT = 3000
"""UTF-16 units of a section's text: https://docs.slack.dev/reference/block-kit/blocks/section-block (2026-11-21)."""

_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours and cursor
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # titles, links, clipboard
    r"|\x1b[ -/]*[0-~]"
)
_ORDINARY = re.compile(r"[\n\t -~]*")
"""Nearly every log: nothing in it is hidden, so that it need not be read letter by letter."""
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {chr(code) for code in range(0x180B, 0x1810)}
"""Letters that Unicode does not call control or format and that yet show nothing."""

_HIDING_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_VISIBLE_CONTROLS = frozenset("\n\t")
_MARKS_IN_A_ROW = 3

_OPAQUE_SCHEME = re.compile(
    r"(?i)(mailto|(?:java|vb)script|\b(?:tel|sms|data|slack|facetime|callto|xmpp|magnet|file)):(?=\S)"
)
_SLASHED = re.compile(r"(?<![\w\]:/.])//(?=[\w\[])")
_HOST = re.compile(
    r"(?i)(?<![\w/.-])((?:[a-z0-9\u00a1-\uffef](?:[a-z0-9\u00a1-\uffef-]{0,62})\.){1,8})"
    r"(com|net|org|edu|gov|mil|int|info|biz|io|ai|dev|app|co|me|us|uk|eu|de|fr|ru|cn|jp|in|br|nl|xyz|top|site|online|shop|"
    r"store|tech|cloud|link|click|live|page|run|zip|mov|tv|gg|ly|to|cc|ws|su|tk|ml|ga|cf|gq|info|pro|name|mobi|icu|club)"
    r"(?![\w-])"
)
_WWW = re.compile(r"(?i)\bwww\.(?=\w)")
_EMOJI = re.compile(r":(?=[\w+'-]*[A-Za-z])([\w+'-]+):|:(100|1234):")
_LOOKALIKE = str.maketrans({"*": "∗", "`": "ˋ", "~": "∼", "@": "＠"})
_EDGE_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9])_+|_+(?![A-Za-z0-9])")
_QUOTE = re.compile(r"(?m)^([ \t]*)((?:>[ \t]*)+)")
_LIST = re.compile(r"(?m)^([ \t]*)([•◦▪])")
_HEADING = re.compile(r"(?m)^[ \t]*#+")
_ENTITY = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MORE = "…"


def plain(text: str, *, limit: int = 10_000) -> str:
    r"""Make text safe for any place that takes it as plain text: log fields, JSON, a page whose templates escape HTML.

    Args:
        text: Anything, lone surrogates included.
        limit: Most Unicode code points of the result.

    Returns:
        The same words: terminal sequences taken out; controls, bidirectional marks, invisible and unassigned letters
        shown as ``\u{202e}``; CRLF as LF; links with ``[:]`` so that nothing makes them live; at most three accents on
        a letter. Not promised: HTML escaping (that is the template's), telling letters apart that look alike, or that
        the words are true.
    """
    head = _head(text, limit)
    shown = _seen(head)
    if shown.isascii() and limit > 0:  # each sign is a letter of its own, and stands for itself
        return shown if len(shown) <= limit and len(head) == len(text) else shown[: limit - 1] + _MORE
    return _capped(shown, text, limit, one=lambda sign: sign, measure=len)


def terminal(text: str, *, limit: int = 10_000, lines: bool = True) -> str:
    r"""Make text safe to print on a terminal.

    Args:
        text: Anything.
        limit: Most code points.
        lines: False shows line ends and tabs as ``\n`` and ``\t``, for a text that must stay on one line.

    Returns:
        As `plain`. Not promised: escaping of rich's console markup; print it as ``rich.text.Text``.
    """
    shown = plain(text, limit=limit)
    return shown if lines else shown.replace("\n", "\\n").replace("\t", "\\t")[:limit]


def inert(text: str, *, limit: int = 10_000) -> str:
    """Make a message of our own safe to print that quotes others: as `plain`, and links and hosts stay as they are."""
    return _capped(_still(_head(text, limit)), text, limit, one=lambda sign: sign, measure=len)


def shortened(text: str, limit: int) -> str:
    """Return a text cut between two words, with an ellipsis; one that fits is returned as it is.

    Args:
        text: Anything; it is not made safe here.
        limit: Most code points of the result, the ellipsis included, at least 1. A word longer than half of that is
            cut where the limit is.
    """
    if len(text) <= limit:
        return text
    head = text[: limit - len(_MORE)]
    words, _, rest = head.rpartition(" ")
    whole = text[len(head)].isspace() or len(rest) > limit // 2
    return (head if whole else words).rstrip(" ,;:(") + _MORE


def slack_mrkdwn(text: str, *, limit: int = SLACK_LIMIT) -> str:
    """Make text safe inside Slack mrkdwn, as prose.

    Args:
        text: Anything.
        limit: Most UTF-16 units of the result; entities count in full and are never cut.

    Returns:
        As `plain`, and: ``& < >`` as entities, so no ping, link or date; stars, ticks, ``~ @``, underscores at a word,
        quotes at a line's start and ``:emoji:`` in letters that look alike. Send it with ``verbatim: true`` and
        without ``link_names``. Not promised: that a person can copy it byte for byte; Slack has no escape for markup.
    """
    return _capped(_unmarked(_seen(_head(text, limit))), text, limit, one=_entity, measure=_utf16)


def slack_code(text: str, *, limit: int = SLACK_LIMIT) -> str:
    """Make text a Slack code block, for log lines: underscores and stars stay as they are.

    Args:
        text: Anything.
        limit: Most UTF-16 units, fences included; at least 16.

    Returns:
        A fenced block; the text cannot close it, ping or link. Not promised: see `slack_mrkdwn`.
    """
    inner = _seen(_head(text, limit)).replace("`", "ˋ").replace("@", "＠")
    return f"```\n{_capped(inner, text, limit - 8, one=_entity, measure=_utf16)}\n```"


def slack_plain(text: str, *, limit: int = SLACK_LIMIT) -> str:
    """Make text safe for Slack plain_text objects (headers, buttons), sent with ``emoji: false``.

    Returns:
        As `plain`, with angle brackets, ampersand and at-sign in letters that look alike: right whether or not the
        place reads entities. Not promised: that a person can copy it byte for byte.
    """
    signs = str.maketrans({"<": "‹", ">": "›", "&": "＆", "@": "＠"})
    shown = _EMOJI.sub(_no_emoji, _seen(_head(text, limit))).translate(signs)
    return _capped(shown, text, limit, one=lambda sign: sign, measure=_utf16)


def chat(text: str, *, limit: int = SLACK_LIMIT) -> str:
    """Make text safe for chats and mail whose markup is not Slack's: Teams, Google Chat, Discord, a pager.

    Returns:
        As `slack_plain`, without Markdown: no link, emphasis, quote or code, nobody is mentioned, and angle brackets
        open no tag. Not promised: that a person can copy it byte for byte.
    """
    signs = str.maketrans({"<": "‹", ">": "›", "&": "＆"})
    shown = _unmarked(_seen(_head(text, limit))).translate(signs).replace("](", "] (")
    shown = _HEADING.sub(lambda found: found[0].replace("#", "＃"), shown)
    return _capped(shown, text, limit, one=lambda sign: sign, measure=_utf16)


def _head(text: str, limit: int) -> str:
    """Bound the work: the rest could never be shown, unless nearly all before it is terminal sequences."""
    return text[: 8 * limit + 1024]


def _seen(text: str) -> str:
    return _defanged(_still(text))


def _still(text: str) -> str:
    if _ORDINARY.fullmatch(text):
        return text
    without = text
    for _ in range(8):
        stripped = _ANSI.sub("", without)
        if stripped == without:
            break
        without = stripped
    return "".join(_visible(without.replace("\r\n", "\n")))


def _visible(text: str) -> Iterator[str]:
    marks = 0
    for sign in text:
        category = unicodedata.category(sign)
        marks = marks + 1 if category in {"Mn", "Me"} else 0
        hidden = category in _HIDING_CATEGORIES and sign not in _VISIBLE_CONTROLS
        if hidden or sign in _UNSEEN or _selects_variation(sign):
            yield f"\\u{{{ord(sign):x}}}"
        elif marks <= _MARKS_IN_A_ROW:
            yield sign


def _selects_variation(sign: str) -> bool:
    return "\ufe00" <= sign <= "\ufe0e" or "\U000e0100" <= sign <= "\U000e01ef"


def _defanged(text: str) -> str:
    text = text.replace("://", "[:]//")
    text = _OPAQUE_SCHEME.sub(r"\1[:]", text)
    text = _SLASHED.sub("[/]/", text)
    text = _WWW.sub("www[.]", text)
    return _HOST.sub(lambda found: f"{found[1][:-1]}[.]{found[2]}", text)


def _unmarked(text: str) -> str:
    text = _QUOTE.sub(lambda found: found[1] + found[2].replace(">", "›"), text)
    text = _LIST.sub(r"\1·", text)
    text = _EMOJI.sub(_no_emoji, text)
    return _EDGE_UNDERSCORE.sub(lambda found: "＿" * len(found[0]), text).translate(_LOOKALIKE)


def _no_emoji(found: re.Match[str]) -> str:
    return f"∶{found[1] or found[2]}∶"


def _entity(sign: str) -> str:
    return _ENTITY.get(sign, sign)


def _utf16(text: str) -> int:
    return sum(2 if sign > "\uffff" else 1 for sign in text)


def _capped(shown: str, text: str, limit: int, *, one: Callable[[str], str], measure: Callable[[str], int]) -> str:
    """Escape letter by letter and stop between two of them; an ellipsis says that something was left out."""
    cut_before = len(text) > len(_head(text, limit))
    if not cut_before and measure(whole := "".join(map(one, shown))) <= limit:
        return whole
    pieces: list[str] = []
    used, room = 0, limit - len(_MORE)
    fits_at = 0
    for letter in _letters(shown):
        piece = "".join(one(sign) for sign in letter)
        used += measure(piece)
        if used > limit:
            return "".join(pieces[:fits_at]) + _MORE if limit > 0 else ""
        pieces.append(piece)
        if used <= room:
            fits_at = len(pieces)
    return "".join(pieces[:fits_at]) + _MORE if cut_before and limit > 0 else "".join(pieces)


def _letters(text: str) -> Iterator[str]:
    """Split into what a reader takes for one letter: a base with accents, a flag of two signs, an emoji with its shape.

    Not promised: every cluster of Unicode annex 29 (scripts of India, Korean jamo in pieces); none of them is ever cut
    inside a code point.
    """
    letter = ""
    for sign in text:
        joins = unicodedata.combining(sign) or unicodedata.category(sign) in {"Mn", "Mc", "Me"} or sign == "\ufe0f"
        skin = "\U0001f3fb" <= sign <= "\U0001f3ff"
        flag = _is_flag(sign) and len(letter) == 1 and _is_flag(letter)
        if letter and not (joins or skin or flag):
            yield letter
            letter = ""
        letter += sign
    if letter:
        yield letter


def _is_flag(sign: str) -> bool:
    return "\U0001f1e6" <= sign <= "\U0001f1ff"
