"""Evaluates the part of the Logging query language that our filters use, over LogEntry objects.

Grammar and meaning: cloud.google.com/logging/docs/view/logging-query-language (read 2026-11-21). Strings compare without
regard to case, ``=~`` is RE2 and regards it, ``:`` is "has", a comparison with a missing field is false, AND and a line
break bind alike, tighter than nothing and looser than NOT; OR binds tighter than AND there, so mixed use needs brackets
and is refused here.
"""

import re
from urllib.parse import unquote

import re2

TOKEN = re.compile(r'\s+|(?P<word>"(?:[^"\\]|\\.)*"|=~|!~|>=|<=|!=|[=:<>()]|[^\s"=:<>()!]+(?:"[^"]*")?)')
SEVERITIES = ["DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY"]
OPERATORS = {"=", "!=", "=~", "!~", ":", ">", "<", ">=", "<="}


class Query:
    """A parsed filter."""

    def __init__(self, text):
        self._tokens = _tokens(text)
        self._at = 0
        self._tree = self._expression()
        if self._at != len(self._tokens):
            raise ValueError(f"not understood from {self._tokens[self._at : self._at + 5]}")

    def matches(self, entry):
        return self._tree(entry)

    def _peek(self):
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self):
        token = self._peek()
        if token is None:
            raise ValueError("the filter ends too early")
        self._at += 1
        return token

    def _expression(self):
        terms, joined = [self._term()], set()
        while self._peek() in {"AND", "OR"}:
            joined.add(self._next())
            terms.append(self._term())
        if len(joined) > 1:
            raise ValueError("AND and OR side by side; use brackets")
        every = any if joined == {"OR"} else all
        return terms[0] if len(terms) == 1 else lambda entry: every(term(entry) for term in terms)

    def _term(self):
        if self._peek() == "NOT":
            self._next()
            inner = self._term()
            return lambda entry: not inner(entry)
        if self._peek() == "(":
            self._next()
            inner = self._expression()
            self._close()
            return inner
        return self._comparison()

    def _close(self):
        if self._next() != ")":
            raise ValueError("a bracket is not closed")

    def _comparison(self):
        name = self._next()
        if name == "log_id":
            self._open()
            log = _string(self._next())
            self._close()
            return lambda entry: unquote(entry.get("logName", "").rpartition("/logs/")[2]) == log
        operator = self._next()
        if operator not in OPERATORS:
            raise ValueError(f"{operator!r} is no operator")
        values = self._values()
        tests = [_test(operator, value) for value in values]
        path = _path(name)
        return lambda entry: any(test(value) for value in _at(entry, path) for test in tests)

    def _open(self):
        if self._next() != "(":
            raise ValueError("a bracket is missing")

    def _values(self):
        if self._peek() != "(":
            return [_string(self._next())]
        self._open()
        values = [_string(self._next())]
        while self._peek() == "OR":
            self._next()
            values.append(_string(self._next()))
        self._close()
        return values


def _tokens(text):
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"not understood: {text[at : at + 20]!r}")
        if match["word"]:
            found.append(match["word"])
        at = match.end()
    return found


def _string(token):
    return token[1:-1].replace('\\"', '"') if token.startswith('"') else token


def _path(name):
    return [part.strip('"') for part in re.findall(r'"[^"]*"|[^."]+', name)]


def _at(value, path):
    if not path:
        return [] if value is None or isinstance(value, dict | list) else [value]
    return _at(value[path[0]], path[1:]) if isinstance(value, dict) and path[0] in value else []


def _test(operator, wanted):
    if operator in {"=~", "!~"}:
        pattern = re2.compile(wanted)
        return lambda value: bool(pattern.search(str(value))) == (operator == "=~")
    if operator == ":":
        return lambda value: wanted.lower() in str(value).lower()
    if operator in {"=", "!="}:
        return lambda value: (str(value).lower() == wanted.lower()) == (operator == "=")
    return lambda value: _compare(operator, _rank(value), _rank(wanted))


def _rank(value):
    return SEVERITIES.index(value) if value in SEVERITIES else float(value)


def _compare(operator, left, right):
    return {">": left > right, "<": left < right, ">=": left >= right, "<=": left <= right}[operator]
