"""The page docs/failures.md, written from the failure catalogue by this module run as a program."""

import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from agent.catalogue.load_failures import FailureCatalogue, Rank, load_failures
from agent.failures.signature import FailureClass, Phase, Role, Signature

MOST_PHRASES = 6

HEAD = """# What can break, and what to do

Written from `agent/catalogue/failures/*.toml`; change the entries, then write this page again with
`python -m tools.failures_page > docs/failures.md`.

A text is searched for the phrases of all signatures at once. Of several signatures in one text a cause comes before a
consequence, then the higher rank, then the earlier line. Where a class depends on how far the server had come,
the phase decides. Words without a known text (hints) speak only where nothing better does. Nothing found is `unknown`.

## How good it is on texts nobody tuned to
Each figure is the first run on a set, before anything was changed for it; afterwards the set is learned from and
counts no more. Labels were read from the threads first. Sets: incidents from threads and forums (dev-2), then 109 and
47 texts searched for what is hard: restarts, replicas, Kubernetes, systemd, kernel logs, devices other than CUDA.

| set | first run on | class | first fix | certain answers right | failures called benign |
|---|---|---|---|---|---|
| dev-2, clean core | 2026-11-21 | 111 of 125 | 111 of 125 | not noted | not noted |
| 109 hard texts | 2026-11-22 | 95 of 109 | 99 of 109 | 58 of 59 | 1 |
| 47 harder texts, after learning from the 109 | 2026-11-22 | 35 of 47 | 33 of 47 | 17 of 18 | 1 |
| 11 ordinary texts, after learning from all of them | 2026-11-22 | 8 of 11 | 10 of 11 | 4 of 4 | 0 |
| 48 texts of all platforms, after learning from all above | 2026-11-22 | 42 of 48 | 44 of 48 | 29 of 29 | 1 |
| 23 more of the same kind, held back until the 48 were learned | 2026-11-22 | 22 of 23 | 22 of 23 | 14 of 14 | 1 |
| 13 of classes that the last two sets lack | 2026-11-22 | 12 of 13 | 12 of 13 | 9 of 9 | 0 |
| 63 texts, 8 of them ordinary, after learning from all above | 2026-11-22 | 54 of 63 | 54 of 63 | 42 of 43 | 0 |
| 21 more, 5 of them ordinary, after learning from the 63 | 2026-11-22 | 18 of 21 | 19 of 21 | 11 of 11 | 0 |
| 60 whole logs, 13 of them ordinary, after learning from all above | 2026-11-22 | 51 of 60 | 53 of 60 | 35 of 36 | 0 |
| 81 whole logs and platforms' texts, 14 ordinary, after all above | 2026-11-22 | 73 of 81 | 76 of 81 | 44 of 45 | 2 |
| 32 more of them, 6 ordinary, held back until the 81 were learned | 2026-11-22 | 28 of 32 | 29 of 32 | 20 of 20 | 0 |
| 81 texts, 23 of them whole logs, 18 ordinary, after all above | 2026-11-22 | 76 of 81 | 76 of 81 | 56 of 57 | 0 |
| 54 more, 9 whole logs, 17 ordinary, held back until then | 2026-11-22 | 50 of 54 | 51 of 54 | 38 of 38 | 0 |
| 100 of new addresses, 28 whole logs, 25 ordinary, after these | 2026-11-23 | 81 of 100 | 81 of 100 | 46 of 50 | 1 |
| 40 more, 22 whole logs, 18 ordinary, held back until then | 2026-11-23 | 32 of 40 | 33 of 40 | 18 of 19 | 0 |
| 72 more, 56 whole logs of 22 repositories, 44 ordinary | 2026-11-23 | 51 of 72 | 53 of 72 | 39 of 42 | 1 |
| 53 more, 45 whole logs of 20 others, 22 ordinary, held back | 2026-11-23 | 48 of 53 | 48 of 53 | 40 of 43 | 2 |
| 10 whole logs of 9 others, 5 ordinary, after learning from these | 2026-11-23 | 7 of 10 | 7 of 10 | 5 of 5 | 0 |
| 46 of new addresses, 21 whole logs, 12 ordinary | 2026-11-23 | 40 of 46 | 41 of 46 | 26 of 29 | 0 |
| 49 threads of vLLM drawn by lot, 4 ordinary, after these | 2026-11-23 | 40 of 49 | 43 of 49 | 10 of 12 | 0 |
| 40 more by lot, 6 ordinary, after these | 2026-11-23 | 34 of 40 | 37 of 40 | 12 of 13 | 0 |
| 33 more by lot, 8 ordinary, after these | 2026-11-23 | 27 of 33 | 29 of 33 | 10 of 12 | 0 |
| 33 held back until then, 8 of platforms, 5 ordinary | 2026-11-23 | 31 of 33 | 30 of 33 | 13 of 13 | 0 |
| 71 of new addresses, 17 whole logs, 22 ordinary, after these | 2026-11-23 | 53 of 71 | 54 of 71 | 33 of 36 | 2 |
| 30 held back until then, 7 ordinary | 2026-11-23 | 26 of 30 | 23 of 30 | 13 of 15 | 0 |
| 25 more threads, 8 ordinary, after these | 2026-11-23 | 24 of 25 | 25 of 25 | 14 of 14 | 0 |
| 51 of new addresses, 26 whole logs, 19 ordinary | 2026-11-23 | 35 of 51 | 37 of 51 | 20 of 22 | 1 |
| 26 held back until then, 13 whole logs, 10 ordinary | 2026-11-23 | 23 of 26 | 22 of 26 | 6 of 7 | 0 |
| 27 more after these, 6 whole logs, 7 ordinary | 2026-11-23 | 20 of 27 | 20 of 27 | 10 of 11 | 0 |
| 39 of new addresses, 22 whole logs, 16 ordinary | 2026-11-23 | 33 of 39 | 30 of 39 | 22 of 24 | 0 |
| 28 held back until then, 14 whole logs, 9 ordinary | 2026-11-23 | 21 of 28 | 19 of 28 | 14 of 15 | 1 |
| 35 of new addresses, 25 whole logs, 13 ordinary, after these | 2026-11-24 | 30 of 35 | 29 of 35 | 6 of 6 | 0 |

The 100 are the first that hold whole logs of repositories never read before, and they were the weakest run since
the second: 9 of the 25 ordinary ones raised an alarm. Most of those had one of four general causes, all mended since:
a handled exception that a warning prints with its traceback, the second line of a Python warning, a list of
arguments, and a queue that had drained when the log ended. The failure called harmless was an ECS agent's
`died due to OOM`. Two labels were given against ADR 0010 and count as wrong all the same; some ends of threads were
completed from their titles.

The 40 held back are of the same repositories and of further threads. Their 4 alarms were queues of benchmarks whose
server was then told to stop, and a worker that ended after its engine was; the certain answer that counts as wrong
contradicts its label only. What the two sets taught is right on both since then, save three labels.

Of the 72, 56 are whole logs as people keep them beside their projects, and 44 are ordinary. By kind: 30 of 44 ordinary
ones (12 raised an alarm, 2 were `unknown`), 11 of 17 whole logs of failures, 10 of 11 texts of platforms. Eight general
causes, all mended since: what a dying engine dumps of its settings, calls that newer Pythons quote over several lines,
a message that a second handler calls a warning, a warning about requests to come in a start that completed, a queue
that filled and drained more than once, an order to stop that was taken for progress, an interrupt at the terminal,
and source that raises behind the name of a process.

The 53 were held back until the 72 were learned: 21 of 22 ordinary ones and no alarm, 20 of 23 whole logs of failures,
7 of 8 texts of platforms. The two failures called harmless, with certainty, are jobs that Slurm ended at their time
limit, said by a program that writes its level in small letters behind its name. Such a line is an error now, a CUDA
error is known without the words that usually stand before it, and a traceback may have 400 lines. Some 80 further
logs of the same and older repositories were read for false alarms, without labels: a count of failed requests that is
none was read as a failure. The 10 are all that were left: an engine that was interrupted while it started raised the
one alarm, a log that was emptied under its writer was refused as binary for the zeros in its hole, and a trainer that
prints its settings line by line is still read by those. Of both sets four are still answered wrong: an engine that
did not wake from its sleep and served again, a patch script that did not find one of its targets, a controller's
notes in JSON, and a table of a service that is ready.

The rows from `46 of new addresses` to `33 held back until then` are mostly threads of vLLM's own tracker that nobody
had read for this, drawn by lot: text cut wherever its writer cut it, so that many labels allow two or three classes.
What was wrong with certainty had four causes, all mended: an error that a start got past, two causes of different
classes of which the earlier won, whose memory `this process has` is, and what a server only notes. An answer beside
another known cause, beside an unknown exception that ended the server, or told by a note is not certain any more,
which costs the two corpora 6 certain answers of 242, all of them right. The five sets raised five alarms, none of
them in the last two.

The 71 are whole logs of vLLM, SGLang and llama.cpp, events, kernel logs, journals and threads; 5 of the 22 ordinary
ones raised an alarm. General causes, all mended: an event of what a pod waited for that stands though the pod has it,
settings and commands that a program shows, a trace read as trouble, and words of the kernel and of shells that nobody
had met. The two called harmless were the kernel's note of memory that the driver did not get, and one line about
workers that wait. In the 30 three labels named a fix in words that the catalogue does not have; by what they mean 26
fixes and 14 of 15 certain answers are right. Both alarms were pods that had their node by then. While reading them
one more fault was found: of two servers that nobody names, the tokens of one undid the failure of the other. Six of
the 101 are still answered wrong, among them two notes of llama.cpp, a notice of torch_npu and a table of a benchmark.
The 25 are short, 9 of their labels allow three classes or more, and some ends were completed from titles.

The 51, 26 and 27 were sought where the sets before have little: llama.cpp, SGLang, Metal, journals in other languages,
autoscalers, spot handlers, device plugins, P/D, LMCache, whole logs of 2026 beside people's projects. 6 of the 36
ordinary ones raised an alarm. General causes, all mended: what llama.cpp and SGLang print of a start and of an answer,
so that one start could excuse another, or none be over; the level of llama.cpp, and of klog, Ray and zerolog behind a
collector's prefix; a unit that systemd was told to stop; a traceback inside a stop; packages that pip lists, and a git
that fails, taken for the server's. Wrong with certainty were a deprecated option and a spot notice called harmless,
both mended, a time-out that may be a hang, not certain any more, and requests that were too long in the log of a server
that had died before. Four more had been read in an earlier set and are not counted. Four are still answered wrong: two
starts that wrote over each other in one file, a time-out, a parser that only the quoted source names, noise of a kernel
that is called unknown. Some ends of threads were completed from their titles. About 350 more logs of the same
repositories were read for false alarms, without labels.

The 39 and the 28 are mostly of vLLM 0.16 to 0.30: whole logs that people keep, shortened where nothing happens, and
journals, events and scale-ins; ten are composed of such. 4 of the 25 ordinary ones raised an alarm. One label of the 39
was given against ADR 0010, so that a certain answer and an alarm count as wrong that are right. General causes, all
mended: a queue that had drained for half a minute when the log ended; a kill that follows an order to stop, of ECS and
of systemd; a hook that was killed, taken for a missing device; what Python prints of a customisation that it goes on
without; a CUDA call that is not permitted, taken for a wrong address. The failure called harmless, with certainty, is
a rank that tries for ever to reach the store where ranks meet: it is known now, and a start that has not come to its
end is never harmless with certainty, whatever it notes. A test script's list of steps is still answered wrong. About
220 more logs were read for false alarms, without labels: the settings that SGLang prints on one line, the name of a
library in a build's log, notes of ROCm are no trouble now.

Before the 35, some 430 blocks of guides, 230 messages of platforms and engines, and about 450 logs were read without
labels for what is common to their errors. A line that says how it goes on is no cause of what ends the server below it,
and what only a warning says is not certain any more, which costs the two corpora 3 certain answers of 232, all of them
right. A client that calls before its server is up, a batch that a program fills for itself, and a log that ends with
words of nobody known are told as what they are. The 35 are of 15 repositories, among them AWS Neuron instances whose
containers restart, Slurm steps, stops in order and journals; 5 more had been read before and are not counted; many
labels of failures allow two or three classes. Both alarms were a script that patches files before the server begins:
such words count only where no server began below them. The name of a package that pip lists was taken for the hub.
Left wrong is one journal of a server that found no device and went on without; a refused key has another first fix.

Besides logs that were kept, texts that can be printed: the sources of vLLM 0.10 to 0.33, nine versions, raise 9,101
different ones. Two draws were labelled before the run and set into the log that prints them (settings refused, weights
loading, memory being profiled, a request refused). Of 248 the first run gave 148 their class, 32 of 35 certain ones
right, none called harmless; of 236 others, after what the 248 taught, 193, 25 of 27, one. The rest are mostly internal
checks that end as `engine_dead` or `unknown`. Of 3,548 notes and warnings of the same sources, each at four places of a
healthy log, 84 raised an alarm and 32 do since: they say that one answer's tool call was lost, that workers wait, or
that a prompt was too long.

The libraries below vLLM were drawn the same way, with a seed, from what they raise and log: transformers 5.23, torch
2.15, triton 3.9, ray 2.60, vLLM 0.6.6 and 0.8.5, and the sources of huggingface_hub, NCCL, FlashInfer, NVIDIA's
container toolkit and kernel modules, and containerd. Of 123 the first run gave 99 a right answer (70 of 92 failures;
51 of 52 certain ones, none called harmless, 1 alarm of 26 ordinary); of 64 others, after what the 123 taught, 50 (34
of 48 failures, 22 of 22, none, no alarm of 13). A label may allow several classes, and `unknown`, where the message
alone does not tell. The misses are refusals of settings, packages and drivers whose exact words nobody had met.

A third draw took what the programs around the server say, and more of vLLM: the strings of torch 2.15's C++, Ray
2.60's raylet and GCS, libtpu, the Rust of safetensors, tokenizers and Xet, RCCL, NVIDIA's kernel modules, containerd,
CRI-O, Docker, the kubelet, systemd, spot handlers, xgrammar, FlashInfer, bitsandbytes, gguf, and vLLM 0.18 and 0.33.
Of 260 the first run gave 200 their class and 200 a right fix (failures 167 of 214, 95 of 98 certain ones right, none
called harmless; 2 of 46 ordinary ones raised an alarm, with certainty: a capacity that the kubelet does not know yet,
and a link error that NVSwitch calls not fatal). The weakest were systemd (3 of 10), bitsandbytes and gguf (2 of 7),
clouds (9 of 14), Ray (9 of 14) and the NVIDIA modules (8 of 12). Of 55 others of the weakest kinds, after what the
260 taught, 41 and 44 (failures 32 of 45, 15 of 15, none, no alarm of 10). All 2,013 notes and warnings of vLLM 0.18
and 0.33 and of the hub client raise 5 alarms alone and 1 in a healthy log. All that vLLM 0.33 raises below its entry
points was then read for certainty: of 209 certain answers some 30 named a flag, a dtype or a rank where a part with
settings of its own was meant. The words behind them are not certain any more, which costs the two corpora nothing.
After these, 40 more of systemd, Ray, clouds, bitsandbytes, gguf and the NVIDIA modules gave 26 and 29 (failures 23 of
35, 11 of 11 certain ones, one called harmless, no alarm of 5): a warning of Ray's that the node is short of memory,
whose level had just been learned. It showed a wider fault: of 1,020 errors that containerd, CRI-O, Docker, the device
plugin and the spot handler log, 29 were called harmless, mostly for the word `info` in them. None is now, and the
word counts where a level stands.

A fourth draw, with a seed, took messages of vLLM 0.20, 0.23, 0.26, 0.29 and 0.32 that can stop a server, spread over
its parts, and of what runs beside it (LMCache, NIXL, UCX, Mooncake, FlashInfer, Ray, uvicorn, transformers,
huggingface_hub, triton, NVIDIA's device plugin, gcsfuse), each in the log that prints it. Of 184 the first run gave
143 their class and 151 a right fix (21 of 22 certain ones right, none called harmless); of the 105 whose label names a
cause, and allows neither `engine_dead` nor `unknown`, 70. Of 75 others, after what the 184 taught, 62 and 67 (12 of
12, none; 27 of 39 with a cause). Of 34 more of vLLM, after what both taught, 30 and 30 (3 of 3, none). General causes,
all mended: a connector or a weight loader that refuses its settings while it is made, an exception that names a flag,
and words of settings in what a step of the engine raises. All 5,650 messages of the five versions were then read for
certainty and for connectors: transfers that fail without an end of the server were `unknown`, and three phrases named
another trouble. Of 29 lines written to deceive about buckets and the programs that mount them, 24 were
`weights_unreadable`, 23 with certainty: such names, and those of permissions, count only beside words of a failure
since then, and lost credentials are never certain; 6 are answered so still, one with certainty.

Of the 35 ordinary texts of the two sets before, one raised an alarm on the first run: a proxy that is refused while its
server still loads, told by a container of another name. Four were answered `unknown`: notes about scaling without
their reason, the end of a container that the platform adds itself, a network card whose kernel line has a number
called XID, and an instance of Cloud Run that ends with 0 without a word of SIGTERM. The last two stay so. After the
first run of the 81, some 700 more logs out of the same repositories were read for false alarms, without labels; one
text of the 54 is the other stream of a run that was among them, and is right since then. Where no event says that the
pod was told to end, or that one start is meant, a text with a failed probe still reads as a failure: whatever failed
may have ended before the start that came up. A shutdown of the node reads as capacity taken back. That a rank's
coordinator is gone proves nothing by itself and is `unknown`. An error line that no rule knows is never called
harmless.
The addresses of the last sets stand at the end of this page.
"""

SOURCES_HEAD = """## Texts of the last sets

Labels as given before the first run; `composed` are texts put together from public ones: several replicas, restarts,
scale-ins. The texts themselves are not kept here.

| read from | class | first fix | learned from it |
|---|---|---|---|"""


def render(catalogue: FailureCatalogue) -> str:
    """The whole page as Markdown."""
    parts = [HEAD, _ranks(catalogue), _contents(catalogue)]
    parts += [_class_section(class_, catalogue) for class_ in FailureClass if class_ in catalogue.classes]
    return "\n".join([*parts, _sources()])


def _sources() -> str:
    """What the last sets were read from, as the label that each text got before the first run."""
    rows = tomllib.loads((Path(__file__).parent / "read_texts.toml").read_text(encoding="utf-8"))["text"]
    return "\n".join(
        [
            SOURCES_HEAD,
            *(f"| {row['from']} | {row['class']} | {row['fix']} | {row.get('learned', '')} |" for row in rows),
            "",
        ]
    )


def _ranks(catalogue: FailureCatalogue) -> str:
    def place(item: tuple[str, Rank]) -> tuple[int, int]:
        return min(list(Role).index(role) for role in item[1].roles), -item[1].precedence

    ranked = sorted(catalogue.ranks.items(), key=place)
    rows = [f"| {rank.precedence} | {name} | {', '.join(sorted(rank.roles))} | {rank.why} |" for name, rank in ranked]
    return "\n".join(["| rank | name | role | what is true of its entries |", "|---|---|---|---|", *rows, ""])


def _contents(catalogue: FailureCatalogue) -> str:
    rows = [
        f"| [{class_}](#{class_}) | {catalogue.classes[class_].what} | {len(_of(class_, catalogue))} |"
        for class_ in FailureClass
        if class_ in catalogue.classes
    ]
    return "\n".join(["| class | what it is | signatures |", "|---|---|---|", *rows, ""])


def _class_section(class_: FailureClass, catalogue: FailureCatalogue) -> str:
    words = catalogue.classes[class_]
    lines = [
        f"## {class_}",
        "",
        words.what,
        "",
        f"**Recognise it:** {words.recognise}",
        "",
        f"**Do:** {words.hint} (`{'`, `'.join(words.fixes)}`)",
        "",
    ]
    for signature in _of(class_, catalogue):
        lines += _signature(signature)
    return "\n".join(lines)


def _of(class_: FailureClass, catalogue: FailureCatalogue) -> list[Signature]:
    """Signatures that can give the class; phase markers are no failures."""
    found = [
        signature
        for signature in catalogue.signatures
        if signature.role is not Role.PHASE
        and class_ in {signature.failure_class, *signature.class_by_phase.values(), *signature.becomes}
    ]
    return sorted(found, key=lambda signature: (list(Role).index(signature.role), -signature.precedence, signature.id))


def _signature(signature: Signature) -> list[str]:
    facts = [str(signature.role), f"rank {signature.precedence}", f"confidence {signature.confidence}"]
    if signature.phase is not Phase.UNKNOWN:
        facts.append(f"phase {signature.phase}")
    if signature.class_by_phase:
        facts.append("class by phase")
    if signature.needs_silence:
        facts.append("only in a whole log without any other trouble")
    if signature.platforms:
        facts.append(", ".join(signature.platforms))
    lines = [f"### {signature.id}: {signature.title}", "", f"*{'; '.join(facts)}*", ""]
    lines += [line for text in (signature.what, signature.recognise) if text for line in (text, "")]
    lines += [f"- {_code(phrase)}" for phrase in signature.phrases[:MOST_PHRASES]]
    if len(signature.phrases) > MOST_PHRASES:
        lines.append(f"- and {len(signature.phrases) - MOST_PHRASES} more")
    lines.append("")
    if signature.hint:
        lines += [f"**Do:** {signature.hint}", ""]
    if signature.fixes and signature.role is not Role.BENIGN:
        lines += [f"Fix actions: {_list(signature.fixes)}", ""]
    if signature.fields:
        lines += [f"Fields: {_list(signature.fields)}", ""]
    lines += [f"<sub>{signature.source}; {signature.date}</sub>", ""]
    return lines


def _list(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _code(phrase: str) -> str:
    return f"`` {phrase} ``" if "`" in phrase else f"`{phrase}`"


if __name__ == "__main__":
    sys.stdout.write(render(load_failures()))
