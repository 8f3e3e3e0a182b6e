"""Lines that hold the words of a failure and are no evidence of one: settings, quoted source, handled exceptions."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from agent.failures.text.log_text import TRACEBACK, indent_of, is_continued, is_error_line, is_note, is_warning
from agent.failures.text.settings import is_setting, without_variables
from agent.failures.text.streams import RECENT_LINES, body_of, server_of

MOST_FRAME_LINES = 80
"""A traceback under a warning is read back no further than this."""

MOST_WORDS = 400
"""A line of more words is taken for no command."""

MOST_TRACEBACK_LINES = 400
"""Imports of imports are the longest tracebacks, and newer Pythons quote each call over several lines."""

MOST_SOURCE_LINES = 12
"""Python quotes no more than a few lines of source below a frame, and a row of carets under each."""

MOST_NUMBERED_LINES = 40
"""IPython quotes five lines around the one that failed; a call over several lines counts as one of them."""

BETWEEN_LINES = 4
"""Of servers that write into one stream, so few lines stand between two of one server that belong together."""

INTERRUPT = "KeyboardInterrupt"
"""What Python raises where somebody interrupts a program: nothing had failed in it."""

UNRAISABLE = "Exception ignored in"
"""How Python announces what a destructor or an exit handler raised: it goes on, for nobody could handle it."""

DUMP = "[dump_input.py:"
"""The place of each line in which a dying engine writes down its settings and its input."""

_SETTINGS = re.compile(
    r"(?:^|[\s:=])(?:Namespace\(|non-default args: \{|args: \['-|(?:(?:Async)?Engine|Server)Args\("
    r"|engine \(v[^)]{1,60}\) with config: |server_args: \{)"
)
_LISTS = re.compile(r"Namespace\(|args|Args\(|with config: |[Cc]ommand|[Cc]md")
_COMMAND = re.compile(r"(?:^|[\s:=(,])(?:[Cc]ommand|[Cc]md)[:=] ?(?=\S{0,80}(?:python|vllm|sglang)\S{0,9} )")
_WITH_FLAGS = re.compile(
    r"\S+(?: (?!-)\S+){0,3}"
    r"(?: -{1,2}[A-Za-z][\w.-]{0,80}"
    r"(?:[ =](?:'[^']{0,400}'|\"[^\"]{0,400}\")|=\S*| (?!-[A-Za-z])\S+(?=\s*$| -))?){1,200}"
)
"""A command and its flags; a word behind the last flag, with more words behind it, may be said of the command."""
_USAGE = re.compile(r"\s{2,60}(?:\[-{1,2}[A-Za-z][^\[\]]{0,400}\]\s?)+(?:\.{3})?\s*")
"""A line of the usage that argparse prints: options in brackets and nothing else."""
_FLAG = re.compile(
    r"(?:\s{1,60}-{1,2}[A-Za-z][\w.-]{1,80}|--[a-z][a-z0-9-]{1,80})(?:[= ](?P<value>\S{0,400}))?(?:\s+\\)?\s*"
)
"""One argument: of a container, as ``kubectl describe`` lists them, or of a command shown line by line."""
_FLAG_NAME = re.compile(r"(?:(?<=\s)|^)--[a-z][\w-]{1,80}")
_ONLY_FLAGS = re.compile(
    r"(?:\+{1,4} \S{1,400}(?: (?!-)\S{1,400}){0,3})?"
    r"(?:\s{0,8}-{1,2}[A-Za-z][\w.-]{0,80}(?:[ =](?!-)[^\s:]\S{0,400})?(?=\s|$)){1,200}\s{0,8}"
)
_PROMPT = re.compile(r"^\s{0,20}(?:[$#+>]{1,3} )?(?:(?:exec|nohup) )?")
_SERVES = frozenset({"serve", "bench", "run-batch", "chat", "complete"})
_PROGRAM = re.compile(r"(?:\S{0,80}/)?(?P<name>vllm|sglang|python[\d.]{0,4})")
_SAYS_MORE = re.compile(
    r"oom|kill|exit|fail|error|crash|died|dead|abort|refus|signal|denied|invalid|unsupported|unknown|unrecog|not\b|no\b"
    r"|fault|dump|timed|lost|reset|hang|hung|stuck|stop|terminat",
    re.IGNORECASE,
)
"""Words of a line that does more than show a command or a flag."""
_OF_JAVA = re.compile(r"(?<=\s)-XX:\S{1,120}")
_SETTING = re.compile(
    r"\s{2,12}(?!(?:\w{0,40}_)?(?:err|errors?|msg|message|reason|source|details?|causes?|kind|description|context): )"
    r"[a-z][a-z0-9_]{2,60}: "
    r"(?:None|true|false|-?[\d.]{1,20}|\"[^\"\s]{0,400}\"|Some\([^\s)]{0,400}\)|\[[^\]\s]{0,400}\]),\s*"
)
"""One of the settings that a program of Rust shows line by line; JSON and YAML write quotes, or no comma.

Rust shows its errors in the same way: their fields have names of their own, and sentences in them.
"""
FRAME = re.compile(r'\bFile "[^"]{1,400}", line \d{1,7}, in \S{1,120}\s*$')
ENGINE_LOOP = (
    *("run_busy_loop", "_process_engine_step", "run_engine_loop", "engine_step", "run_engine_core_busy_loop"),
    *("event_loop_normal", "event_loop_overlap", "event_loop_pp"),
)
_NUMBERED = re.compile(r"\s{0,12}(?:-{1,8}>\s?)?\d{1,6}(?:\s.*)?$")
_FRAME_OF_IPYTHON = re.compile(r"(?:File )?[~/<]\S{1,400}(?::\d{1,7},)? in \S")
"""``File ~/a.py:116, in name(...)``, and ``/a.py in name(...)`` of IPython before 8."""
_OUTERMOST = re.compile(
    r'\bFile "[^"]{1,400}", line \d{1,7}, '
    rf"in (?:<module>|run_engine_core|run_scheduler_process|output_handler|{'|'.join(ENGINE_LOOP)})\s*$"
)
_OF_VLLM = re.compile(
    r'\bFile "[^"]{0,400}/(?:bin/vllm|vllm/(?:entrypoints|v1|engine|executor|worker)/[^"]{1,200}'
    r'|sglang/(?:launch_server\.py|srt/(?:managers|entrypoints|model_executor)/[^"]{1,200}))", line '
)
_OF_A_PACKAGE = re.compile(
    r"/(?:(?:site|dist)-packages|vllm|sglang|lmdeploy|kserve|huggingfaceserver|text_generation_server|fastchat"
    r"|tensorrt_llm)/"
)
_OWN_MISTAKE = re.compile(
    r"\b(?:NameError|UnboundLocalError|ImportError|ModuleNotFoundError|FileNotFoundError|ZeroDivisionError): "
    r"|\bAttributeError: (?!'NoneType')"
)
"""What a program does wrong whatever its server answers."""
_STEPS = (
    *("execute_model", "load_model", "init_device", "determine_available_memory", "determine_num_available_blocks"),
    *("initialize_from_config", "initialize_cache", "compile_or_warm_up_model"),
)
"""What an engine asks of its workers by itself, and does not outlive: no call of a client is answered there."""
_OF_STEP = re.compile(
    r'\bFile "[^"]{0,400}/vllm/(?:v1/)?(?:worker|executor)/[^"]{1,200}", line \d{1,7}, '
    rf"in (?:{'|'.join(_STEPS)})\s*$"
)
_OF_PROGRAM = re.compile(r'\bFile "[^"]{0,400}/(?:bin/vllm|vllm/entrypoints/[^"]{1,200})", line ')
_RAISED = re.compile(r"\braise\b(?! [\w.]{1,80}\(?\s*$)")
"""Source that raises, with the words that it raises; ``raise NotImplementedError(`` has them on other lines."""
_BAD_INPUT = re.compile(r"(?:^|[\s.\]])(?:ValueError|TypeError|NotImplementedError|\w{0,40}ValidationError)(?::|$)")
REFUSING = ("Error in preprocessing prompt inputs", "Error preparing request components", "Error building prompts")
"""What vLLM 0.6 to 0.33 writes, with a traceback, when it answers a request with 400 (entrypoints, serving.py)."""
_WARNED = re.compile(r"\.py:\d{1,7}: \w{0,60}Warning: .{1,400}:\s*$")
"""A Python warning of several lines."""
_CUSTOMISED = re.compile(r"\bError in (?:site|user)customize; set PYTHONVERBOSE for traceback:\s*$")
_NOT_IMPORTED = re.compile(r"\b(?:ImportError|ModuleNotFoundError): ")
"""What Python goes on without; another exception there is a trouble of the machine."""
_HANDLER_NAME = re.compile(r"\[[\w.-]{1,40}\] ?")
_PASSES = re.compile(
    r"\b(?:[Rr]etr(?:y|ied|ying)|resum(?:ed|ing)|recovered|continu(?:e|ing) without|\(expected\b|PASS(?:ED)?"
    r"|(?:attempt|try)\b.{0,20}\bsucceeded|using (?!GPU)\S{1,40} instead)\b"
)
_COUNTED = (
    r"\b(?:errors?|failures?|count|total|so far|ecc|uncorrectable|slowdown|failed|died|crashed|killed|events?"
    r"|double bit)\s{0,40}"
)
_COUNTS_NONE = re.compile(
    rf"{_COUNTED}[:=]\s{{0,4}}(?:0|not active|none|false|n/?a)\s*$|\bcount 0\s*$"
    r"|(?:^|[:,(]|\bha[sd]|\bwith|\band)\s?0 uncorrectable\b",
    re.IGNORECASE,
)
"""A counter, as a monitor or ``nvidia-smi -q`` shows it, of a trouble that did not occur."""
_COUNTS_SOME = re.compile(
    rf"(?:{_COUNTED}|\b(?:volatile|aggregate)\s{{0,4}})[:=]\s{{0,4}}[1-9]|\bXid \("
    r"|\bKilled process \d|\btraps: |\b(?:retry|retries|attempts?)\b",
    re.IGNORECASE,
)
"""Another counter of the same line, of a trouble that did occur; the driver's or kernel's report; a count of tries."""
GOES_ON = re.compile(r"\b(?:fall(?:s|ing)? ?back|fallback|ignor(?:ed|ing)|skipp(?:ed|ing))\b", re.IGNORECASE)
_HEAD = re.compile(
    r"(?P<process>(?:\[rank\d{1,4}\]:\s?|\([^()\n]{1,80}=[^()\n]{1,80}\)\s?)*)"
    r"(?:(?P<level>CRITICAL|FATAL|ERROR|WARNING|INFO|DEBUG)[ :]\s{0,5}(?:[\d-]{5,10} [\d:.,]{8,16} )?"
    r"(?:\[?(?P<place>[\w./-]{1,80}:\d{1,6})\])?)?"
)


@lru_cache(maxsize=RECENT_LINES)
def goes_on_above(line: str) -> bool:
    """Whether a line, behind what a collector writes before it, goes on with what the line above began."""
    return is_continued(body_of(line))


def is_quoted(lines: Sequence[str], index: int) -> bool:
    """Whether a line holds the words of a failure only because something else is shown in it.

    It is what a dying engine dumps of its settings and its input; or source that a traceback quotes; or the second line
    of what Python warns of.
    """
    line = lines[index]
    if is_dumped(line) or _is_numbered_source(lines, index):
        return True
    if index == 0 or _RAISED.search(line) or _is_broken_assertion(lines, index):
        return False
    own = (at for at in range(index - 1, max(-1, index - BETWEEN_LINES), -1) if server_of(lines[at]) == server_of(line))
    before = lines[next(own, index)]
    if _WARNED.search(before) or (_CUSTOMISED.search(before) and _NOT_IMPORTED.search(line)):
        return True
    return not FRAME.search(line) and _is_source(lines, index)


def _is_numbered_source(lines: Sequence[str], index: int) -> bool:
    """Whether a line is source below the head of one of IPython's frames, with only such lines between."""
    if not _NUMBERED.match(lines[index]):
        return False
    above = range(index - 1, max(-1, index - MOST_NUMBERED_LINES), -1)
    head = next((lines[at] for at in above if not _NUMBERED.match(lines[at])), "")
    return _FRAME_OF_IPYTHON.match(head) is not None


def _is_broken_assertion(lines: Sequence[str], index: int) -> bool:
    """Whether a line is the source of the assertion that failed: without words of its own it is all that is said."""
    if "assert " not in lines[index]:
        return False
    below = (line.rstrip() for line in lines[index + 1 : index + 1 + BETWEEN_LINES])
    return any(line.endswith(("AssertionError", "AssertionError:")) for line in below)


@lru_cache(maxsize=RECENT_LINES)
def without_arguments(line: str) -> str:
    """The line without the settings, or the flags of a command, that it lists; an error keeps what it lists."""
    body = body_of(line)
    if any(shown.fullmatch(body) for shown in (_SETTING, _USAGE)) or _is_argument(body) or is_setting(body):
        return ""
    if (left := without_variables(body)) != body and not is_error_line(body):
        line = body = left
    if _shows_a_command(body):
        return ""
    line = _OF_JAVA.sub("", line) if "-XX:" in line else line
    if _LISTS.search(line, 0, 400) is None or is_error_line(body_of(line)):
        return line
    if settings := _SETTINGS.search(line, 0, 400):
        return line[: settings.end()]
    command = _COMMAND.search(line, 0, 400)
    listed = _WITH_FLAGS.match(line, command.end()) if command else None
    return line[: listed.start()] + line[listed.end() :] if listed else line


def without_flag_names(line: str) -> str:
    """The line without the names of flags, where it shows a command or flags alone.

    ``--failed-request-threshold 0.1`` says of nothing that it failed; words behind a flag may say so.
    """
    return _FLAG_NAME.sub("--", line) if "--" in line and _ONLY_FLAGS.fullmatch(line) else line


def _shows_a_command(body: str) -> bool:
    """Whether a line is the command that starts a server, with its flags, and no word of what came of it."""
    if " --" not in body:
        return False
    words = _PROMPT.sub("", body, count=1).split(maxsplit=MOST_WORDS)
    program = _PROGRAM.fullmatch(words[0]) if 2 < len(words) <= MOST_WORDS else None
    if program is None:
        return False
    python = program["name"].startswith("python")
    serves = words[1] == "-m" or words[1].endswith(".py") if python else words[1] in _SERVES
    return serves and not any(_SAYS_MORE.search(word) for word in words[2:] if not word.startswith("--"))


def _is_argument(body: str) -> bool:
    """Whether a line is one flag, with its value where it has one, that tells of no failure."""
    found = _FLAG.fullmatch(body)
    return found is not None and not _SAYS_MORE.search(found["value"] or "")


def says_it_passed(line: str) -> bool:
    """Whether a line tells a trouble and how its program went on."""
    return bool(GOES_ON.search(line) or _PASSES.search(line))


def counts_none(line: str) -> bool:
    """Whether a line counts how often a trouble occurred, and it did not."""
    none = _COUNTS_NONE.search(line) is not None and _COUNTS_SOME.search(line) is None
    return none and not is_error_line(body_of(line))


def is_dumped(line: str) -> bool:
    """Whether a dying engine shows its settings and its input in the line: no word of it says why, and yet it dies."""
    return DUMP in line[:400]


def _is_source(lines: Sequence[str], index: int) -> bool:
    """Whether a line is source below a frame of the same writer; newer Pythons quote a call over several lines.

    The further lines of source that raises are the words that it raises. Source stands further in than its frame:
    where a whole log is indented, what stands no further in is the exception below it.
    """
    first = max(0, index - MOST_SOURCE_LINES)
    if not any('File "' in line for line in lines[first:index]):  # most lines stand below no frame: told for little
        return False
    server, indent = server_of(lines[index]), indent_of(body_of(lines[index]))
    for at in range(index, first, -1):
        if not goes_on_above(lines[at]) or server_of(lines[at]) != server:
            return False
        above = lines[at - 1]
        if FRAME.search(above):
            of_it = server_of(above) == server and indent > indent_of(body_of(above))
            return of_it and (at == index or "raise " not in lines[at])
    return False


def is_logged_as_mild(lines: Sequence[str], index: int) -> bool:
    """Whether the line beside this one is the same message, from a second handler, as a note or a warning."""
    body = body_of(lines[index])
    name = _HANDLER_NAME.match(body)
    message = body[name.end() :].strip() if name else ""
    beside = (lines[at] for at in (index - 1, index + 1) if 0 <= at < len(lines))
    return len(message) > 0 and any(
        line.endswith(message) and (is_note(line) or is_warning(line)) for line in map(str.rstrip, beside)
    )


def is_mild(lines: Sequence[str], index: int) -> bool:
    """Whether no guess is taken from a line: it, or its twin of another handler, is a note or a warning."""
    return is_note(lines[index]) or is_warning(lines[index]) or is_logged_as_mild(lines, index)


def is_handled(lines: Sequence[str], index: int) -> bool:
    """Whether the traceback that the line ends, or stands in, is printed by a warning that says how it goes on.

    The warning stands directly above it and is of the same process, or Python says itself that it ignores what follows.
    vLLM's logger writes the head of its record before every line of it: below such a warning, a traceback without that
    head is another's. Of other loggers' warnings nothing tells a traceback of theirs from one that ended the process:
    the server must write on below it.
    """
    head = None if _RAISED.search(lines[index]) else _head(lines, index)
    if head is not None and UNRAISABLE in lines[head]:
        return True
    if head is None or not (is_warning(lines[head]) and GOES_ON.search(lines[head])):
        return False
    return bool(_writer(lines[index])[-1]) or _goes_on(lines, index)


def is_refusal(lines: Sequence[str], index: int) -> bool:
    """Whether the line stands in a traceback that vLLM wrote when it refused a request, or ends it with bad input."""
    body = body_of(lines[index])
    if not (TRACEBACK in body or is_continued(body) or _BAD_INPUT.search(body)):
        return False
    head = _head(lines, index)
    return head is not None and any(words in lines[head] for words in REFUSING)


def ends_process(lines: Sequence[str], index: int) -> bool:
    """Whether a traceback right above the line begins where a program or an engine's loop does: nothing goes on."""
    return any(_OUTERMOST.search(frame) for frame in _frames_above(lines, index))


def ends_server(lines: Sequence[str], index: int) -> bool:
    """Whether a line is the exception that ended a process of vLLM or SGLang: no request's, client's or script's.

    Its traceback begins where their program or their engine's loop does, or goes through a step of the engine's own.
    Any other was caught further in: an engine outlives a client's call that it could not answer.
    """
    if INTERRUPT in lines[index]:
        return False
    frames = list(_frames_above(lines, index))
    ended = any(map(_OUTERMOST.search, frames)) and any(map(_OF_VLLM.search, frames))
    return ended or any(map(_OF_STEP.search, frames))


def ends_script(lines: Sequence[str], index: int) -> bool:
    """Whether a line is the exception that ended a program of somebody's own, without a frame of any package.

    What a server that does not answer may bring about is none: no time-out, no connection, no missing answer.
    """
    if not _OWN_MISTAKE.search(lines[index]):
        return False
    frames = [line for line in _frames_above(lines, index) if 'File "' in line]
    own = not any(map(_OF_A_PACKAGE.search, frames)) and not any(map(_OF_VLLM.search, frames))
    return own and any("in <module>" in frame for frame in frames)


def is_programs(lines: Sequence[str], index: int) -> bool:
    """Whether the line ends a traceback of vLLM's own program, and not only of a process that it started."""
    return any(map(_OF_PROGRAM.search, _frames_above(lines, index)))


def _frames_above(lines: Sequence[str], index: int) -> Iterator[str]:
    """The lines of the traceback that stands right above a line and that it ends, innermost first."""
    if goes_on_above(lines[index]):
        return
    server = server_of(lines[index])
    for at in range(index - 1, max(-1, index - MOST_TRACEBACK_LINES), -1):
        if TRACEBACK in lines[at] or server_of(lines[at]) != server or not goes_on_above(lines[at]):
            return
        yield lines[at]


def _head(lines: Sequence[str], index: int) -> int | None:
    """The line of the same record directly above the traceback that the line ends, or stands in."""
    first = max(0, index - MOST_FRAME_LINES)
    head = next((at for at in range(index, first, -1) if TRACEBACK in lines[at]), None)
    if head is None:  # most lines stand below no traceback: told for little
        return None
    written_by = _writer(lines[index])
    for at in range(index, head, -1):
        if not lines[at].strip():  # of whoever copied the log
            continue
        if _writer(lines[at]) != written_by or (at < index and not goes_on_above(lines[at])):
            return None
    own = _writer(lines[head]) == _writer(lines[head - 1], record=True) == written_by
    return head - 1 if own else None


def _goes_on(lines: Sequence[str], index: int) -> bool:
    """Whether the server writes a line below a traceback that is neither part of it nor an error."""
    server = server_of(lines[index])
    below = (line for line in lines[index + 1 : index + 1 + MOST_FRAME_LINES] if server_of(line) == server)
    return any(is_note(body_of(line)) or not (goes_on_above(line) or is_error_line(body_of(line))) for line in below)


@lru_cache(maxsize=RECENT_LINES)
def _writer(line: str, *, record: bool = False) -> tuple[str, ...]:
    """Server, process, level and place of a line; ``record`` for a record's first line, which alone may have a level.

    Where no place is named, only the first line of a record has a level.
    """
    head = _HEAD.match(body_of(line))
    said = head.groupdict("") if head else {}
    level = "" if record and not said.get("place") else said.get("level", "")
    return server_of(line), said.get("process", "").strip(), level, said.get("place", "")
