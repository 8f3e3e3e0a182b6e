"""The page docs/accuracy.md: first runs on unseen texts and their sources; written by this module run as a program."""

import sys
import tomllib
from pathlib import Path

HEAD = """# How good the classification is on texts nobody tuned to

Written by `python -m tools.accuracy_page > docs/accuracy.md`.

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
| 65 threads, 27 of them of vLLM, 7 ordinary | 2026-11-26 | 53 of 65 | 55 of 65 | 33 of 35 | 0 |
| 42 texts of new repositories, 34 whole logs, 18 ordinary | 2026-11-26 | 38 of 42 | 38 of 42 | 20 of 20 | 0 |
| 69 threads held back until then, 8 ordinary | 2026-11-26 | 59 of 69 | 63 of 69 | 40 of 41 | 2 |
| 46 texts held back until then, 42 whole logs, 17 ordinary | 2026-11-26 | 35 of 46 | 30 of 46 | 16 of 18 | 0 |
| 51 threads on what stands under and beside servers, 8 ordinary | 2026-11-26 | 47 of 51 | 47 of 51 | 23 of 23 | 0 |
| 50 whole logs of new repositories by lot, 28 ordinary | 2026-11-26 | 44 of 50 | 44 of 50 | 26 of 26 | 0 |
| 42 more held back until then, 28 ordinary | 2026-11-26 | 33 of 42 | 35 of 42 | 19 of 20 | 1 |
| 40 of new addresses, 7 whole logs, 5 composed, 6 ordinary | 2026-11-26 | 36 of 40 | 35 of 40 | 17 of 17 | 1 |
| 20 held back until then, 2 whole logs, 4 ordinary | 2026-11-26 | 19 of 20 | 19 of 20 | 11 of 11 | 0 |
| 32 more after these, 9 composed, 9 ordinary | 2026-11-26 | 29 of 32 | 28 of 32 | 14 of 14 | 0 |
| 15 more after these, 8 composed, 2 ordinary | 2026-11-26 | 13 of 15 | 13 of 15 | 6 of 6 | 1 |
| 62 of new addresses, 6 whole logs, 10 composed, 15 ordinary | 2026-11-26 | 54 of 62 | 56 of 62 | 21 of 22 | 1 |
| 78 of new addresses, 15 whole logs, 13 composed, 14 ordinary | 2026-11-26 | 67 of 78 | 66 of 78 | 38 of 38 | 1 |
| 78 held back of that search, 8 whole, 12 composed, 14 ordinary | 2026-11-27 | 75 of 78 | 71 of 78 | 50 of 50 | 2 |
| 62 likewise, 15 whole logs, 12 composed, 14 ordinary | 2026-11-27 | 61 of 62 | 61 of 62 | 30 of 30 | 0 |
| 64 of new addresses, 13 whole logs, 8 composed, 10 ordinary | 2026-11-27 | 58 of 64 | 60 of 64 | 36 of 36 | 1 |
| 77 likewise, 19 whole logs, 10 composed, 16 ordinary | 2026-11-27 | 68 of 77 | 68 of 77 | 25 of 26 | 0 |
| 64 held back of the first, 16 whole, 8 composed, 12 ordinary | 2026-11-27 | 63 of 64 | 62 of 64 | 39 of 39 | 0 |
| 77 held back of the second, 29 whole, 10 composed, 16 ordinary | 2026-11-27 | 62 of 77 | 62 of 77 | 27 of 29 | 0 |
| 91 excerpts, 15 whole logs, 7 composed, 12 ordinary, after these | 2026-11-27 | 86 of 91 | 81 of 91 | 34 of 34 | 0 |
| 71 drawn from the same, 12 whole logs, 13 ordinary | 2026-11-27 | 62 of 71 | 55 of 71 | 19 of 19 | 0 |
| 66 of new addresses, 20 whole logs, 9 composed, 16 ordinary | 2026-11-27 | 59 of 66 | 57 of 66 | 31 of 31 | 0 |
| 64 held back of that search, 15 whole logs, 12 ordinary | 2026-11-27 | 58 of 64 | 55 of 64 | 23 of 23 | 0 |
| 56 excerpts of new addresses, 5 composed, 4 ordinary | 2026-11-27 | 55 of 56 | 53 of 56 | 34 of 34 | 0 |
| 61 of new addresses, 23 whole logs, 13 composed, 15 ordinary | 2026-11-27 | 55 of 61 | 55 of 61 | 21 of 21 | 0 |
| 56 held back of the first, 5 composed, 3 ordinary | 2026-11-27 | 53 of 56 | 51 of 56 | 32 of 32 | 1 |
| 60 held back of the second, 25 whole, 12 composed, 18 ordinary | 2026-11-27 | 59 of 60 | 55 of 60 | 30 of 30 | 0 |
| 92 excerpts, each class twice or thrice, 8 ordinary, after these | 2026-11-27 | 86 of 92 | 83 of 92 | 56 of 57 | 1 |
| 60 of new addresses, 23 whole logs, 12 composed, 14 ordinary | 2026-11-27 | 56 of 60 | 54 of 60 | 29 of 29 | 0 |
| 41 excerpts of new addresses, 5 ordinary, after these | 2026-11-27 | 38 of 41 | 38 of 41 | 25 of 25 | 0 |
| 36 of restarts, units and platforms, 5 whole logs, 9 ordinary | 2026-11-27 | 31 of 36 | 31 of 36 | 18 of 19 | 1 |
| 41 held back of the first, 4 ordinary | 2026-11-27 | 31 of 41 | 31 of 41 | 21 of 22 | 2 |
| 35 held back of the second, 5 whole logs, 7 ordinary | 2026-11-27 | 32 of 35 | 32 of 35 | 23 of 23 | 0 |
| 58 excerpts of vLLM, some cut short, 12 ordinary | 2026-11-27 | 41 of 58 | 39 of 58 | 21 of 21 | 2 |
| 70 whole logs of new addresses, 6 composed, 15 ordinary | 2026-11-27 | 60 of 70 | 63 of 70 | 30 of 30 | 1 |
| 137, classes as in dev-2, 30 long, 11 ordinary, after these | 2026-11-27 | 125 of 137 | 126 of 137 | 91 of 91 | 2 |
| 98 likewise, 24 long, 8 ordinary, after learning from the 137 | 2026-11-27 | 88 of 98 | 90 of 98 | 55 of 55 | 1 |
| 142 likewise, 28 long, 15 ordinary, after learning from the 98 | 2026-11-27 | 129 of 142 | 126 of 142 | 90 of 90 | 3 |
| 65 likewise, 20 long, 7 ordinary, after learning from the 142 | 2026-11-27 | 54 of 65 | 54 of 65 | 31 of 32 | 2 |
| 157 likewise, 21 long, 19 ordinary, after learning the 65 | 2026-11-28 | 144 of 157 | 140 of 157 | 108 of 110 | 3 |
| 95 likewise, 10 long, 17 ordinary, after learning the 157 | 2026-11-28 | 86 of 95 | 81 of 95 | 56 of 56 | 0 |

The rows up to `54 more` were searched for kinds that those before lacked; from the 100 on they hold whole logs of
repositories never read before, and threads drawn by lot, cut wherever their writer cut them, of which many labels allow
two or three classes. What was missed once is right since then, except labels given against ADR 0010 and what is named
below. Texts read in an earlier set are not counted; some ends of threads were completed from their titles.

What the misses had in common, all mended:

- Ordinary logs that raised an alarm: a handled exception that a warning prints with its traceback, the second line of a
  Python warning, arguments and settings that a program shows, in one line or line by line; a queue that had drained,
  once, more than once, or half a minute before the end; an order to stop that was taken for progress, and the kill, the
  failed hook or the exception below it; an event of what a pod waited for that stands though the pod has it; a script
  that patches files before the server begins; what llama.cpp, SGLang and TGI print of a start and of an answer; levels
  of klog, Ray, zerolog and llama.cpp behind a collector's prefix; a toleration that `kubectl describe` lists.
- Failures called harmless: an ECS agent's `died due to OOM`, jobs that Slurm ended, a program that writes its level in
  small letters, the kernel's note of memory that the driver did not get, a spot notice, a rank that tries for ever to
  reach the store where ranks meet, a deep queue of SGLang in one line, a tool call that the server could not read
  and refused with a 400. An error line that no rule knows is never called harmless, nor is an exception for a note in
  its words; a start that has not come to its end is never harmless with certainty.
- Wrong with certainty: an error that a start got past, two causes of which the earlier won, whose memory `this process
  has` is, what a server only notes, a time-out that may be a hang, requests that were too long in the log of a server
  that had died before, the number of a signal, a name that vLLM calls wrong because the hub had refused it, a client of
  its own machine taken for the hub, a warning about locked memory, a config without a kind of model. Beside a known
  cause of another class, beside an unknown exception that ended the server, or where only
  a note says it, nothing is certain.

The four of 2026-11-26 are the first in which most texts are none of vLLM's: SGLang, llama.cpp, Ollama, TGI, Triton,
Ascend, managers above them, and services of Cloud Run and Kubernetes (15 of the 46, of which 7 got a right first fix).
Before the 69 and the 46 the sources of SGLang, TGI, LMDeploy, llama.cpp and vLLM Ascend were read for what they raise
and note: of 1,130 warnings of SGLang, which writes no level, 91 raised an alarm in a log that serves afterwards, and 6
do since; words without a level of a server that is up are no guess any more. 14 labels of the 69 were made stricter
before the run; as first written they would give 63.

The two rows above the last twelve are logs of repositories never read before that keep one under some thirty usual
names (vllm.log, ollama.log, pod-describe.txt): the first in the order of a lot with a seed, without the healthy ones
of vLLM from the fifteenth on; the second what the lot left, as far as it was read, and what a second list of names
gave. Two labels were mistaken, seen afterwards, and count as wrong: an ordered stop that was read as a dead engine,
the one called benign, and a start that waited for GPUs, read as interrupted. Mended: arguments that a program's
usage, a pod or a JVM lists; a retry and a plugin registered twice above a start that comes up; a probe that nobody
answers yet. Before them the logs of six servers (vLLM old and new, SGLang, llama.cpp, TGI, Ollama) were crossed with
601 failures at nine places, with 1,055 ordered ends and with 2,610 ends that nobody ordered: 928 of 1,202 failures
that another start of TGI or Ollama followed lost their class, nearly all to benign, and 3 do since; 120 ordered ends
raised an alarm, and none does; of the unordered none was missed. 222 lines that use a failure's words for a setting,
a counter, a retry or another program were written against the newest 446 phrases: 207 got a class, most with
certainty, and 39 do since, 5 with it.

The four below them were asked for as an engineer would search: by what a log shows and what happened, twelve answers to
a question, and the first that had a log; of the whole logs the lines of their course were kept. Where the question
named an error the texts are the easier ones. Composed are restarts, replicas in one stream, scale-ins, a rolling
update, Container Apps, a spot node, logs printed newest first. Of the three ordinary ones that raised an alarm, one
was of an event of a pull secret that nobody needed, two of probes that got no answer yet: they are over now where the
pod's own log comes up below, or Container Apps calls the same revision ready. The failures called harmless were a rank
whose store is answered by somebody else, and a pod for which an autoscaler's own log finds no node group. One label is
stricter than that of the same words in dev-2 (a router without workers), and counts as wrong. Wrong fixes named a
variable of vLLM's for Ollama, and a quota for a spot node; a kernel that a build does not hold was read as a card that
cannot run it.

The two below these were asked for in the same way, of addresses that no set had, and run on the same rules. Twelve of
the 19 misses of class were words that no rule knew, of troubles that it knows from other programs: a prompt too long,
weights that leave no room for the cache, a model's file of another format, an engine that does not answer, a driver too
old for the image, a status of Windows, an engine plan of another build, a node that is taken back. So 341 lines in the
words of some forty programs were written, and labelled before they were asked: the rules as they had been gave 233 of
them their class, as they are now 320. Of 3,269 public logs two hold a new phrase in a line that is of another program.
The alarm with certainty was a preset that llama.cpp looks for and does without; the failures called harmless were a
refusal that a client logs as JSON, and a traceback cut short that TorchServe logs as notes. Two more of the ordinary
ones were `unknown`: a setting that the agent of ECS cannot read, and SGLang's number that is reset to another.

The two after these are the halves of the same two searches that were held back, by lot, while the first halves and some
430 more texts were learned. So they come from the same searches as texts that were learned, though from no same
address: other texts will fare less well. Two failures were called harmless: a driver library without a card, which
Ollama notes, and a leak of SGLang's pool that is printed without a level. Two ordinary ones were `unknown`: schedulers
that end in order, and an instance that Cloud Run ends with 0 because its user disabled it. Four of the eight wrong
first fixes are theirs; of the others two are full cards, one is a client's limit of -1, and one a text cut before
anything happens. For comparison, in the texts that were sought for what the rules lack, of servers beside vLLM and of
threads about single mechanisms, the first runs gave 111 of 176 and 147 of 166, with 119 of 121 certain ones right;
their labels were not sealed, so they stand in no row.

The four from `64 of new addresses` on were labelled and sealed in halves before any was asked; the first two are the
halves that were learned from. Of 31 of the 64 texts only a place in an index of public files is known, no address:
they are counted, and not listed.
The failure called harmless was a request too long whose refusal a terminal had broken within the phrase. The certain
one that was wrong was an address in use in the log of a server whose requests are served all the same; a volume that a
pod has, a probe that one start missed, and what Python ignores while it ends were the other ordinary ones. Five of the
other misses were words that no rule knew, of a missing package or library, a guard, a peer, a driver not yet up; four
took the class of a line beside the cause: of a number 127, a segfault, a warning, a file that helps the cache.

In the other halves no failure was called harmless. Three ordinary ones raised an alarm: a container's note about
forward compatibility (with certainty), a request whose fields did not pass validation, and a schema that a library
does not support; four more were `unknown`. Mended of the others: a card that llama.cpp does not find, a server that
asks itself through a proxy, SYCL and Metal, a router whose thread panicked. Left: a picture that a request names and
that does not come, a head size without a kernel, a health check that is not answered in time, cuBLAS; that the kubelet
looks for room on a disk is no failure by itself.

The four from `91 excerpts` on are two searches more, labelled and sealed in halves; the 71 were run before the 91 were
learned, the 64 after the other three. Of 56 of the 162 excerpts only a place in an index is known: they are counted,
and not listed. No failure was called harmless, and all 107 certain answers were right. Five ordinary ones raised an
alarm: an engine that is asked to end in order, a probe that failed once while a pod was starting, a request's broken
video, words of a prompt in a line without a head, and a web application of its own that broke off an answer; three of
them do so still. Most of the other 22 misses of class were words that no rule knew: of a cgroup's limit in an old
kernel, a port that somebody's own script finds taken, kernels that a card or a format does not go with, a template
that llama.cpp does not support, a workspace of FlashInfer, Ray's own guesses cut within a line. Left: an adapter that
is named by an id of the hub, the video and the prompt, a stub of Triton that writes its failure as a note, a probe of
a pod that serves below.

The four from `56 excerpts` on are two searches more, labelled and sealed in halves; the second halves were run after
the first were learned. The first search asked for each class as often as dev-2 has it, and cut its texts alike: 51 of
the 112 are of no LLM server (training, images, embeddings), and their labels were read from excerpts of the threads.
The second asked for whole logs, restarts, replicas and platforms; of 12 of its texts only a place in an index is
known. All 117 certain answers were right. The failure called harmless was a gateway that does not serve the model it
is asked for, below a list of models that was answered. Two ordinary ones raised an alarm, a draft model that goes on
without a feature and a script that sets a time-out. Mended of the misses: an image that was pulled at the third try, a
probe of a revision that Container Apps calls ready in its own stream, a call that a weight loader of another version
does not take, a task that ECS cannot place, a card that Ray looks for at an address of no node, a parameter that
Ascend's operator refuses, words of a gateway, a template and a scheduler. Left: memory that is missing while a server
wakes and that answers again below, a startup probe beside a liveness probe, an allocation that fails within a kernel.

The two after these were asked for in the same way, of LLM servers alone, sealed, and run once the four were learned.
28 of the 92 were found by well-known texts of errors, without an address, and are the easier ones; all labels rest on
excerpts of threads and on logs. No ordinary text raised an alarm, two were `unknown`. The failure called harmless, and
the certain answer that was wrong, was a warning that the compiled kernels miss a symbol of PyTorch: a failure now.
Mended too: memory that is missing below requests, a program that a TPU has no room to load, a cache that is not there,
Ollama that takes no more requests, a registry's storage that does not answer, devices that the container runtime does
not find. Left: an index out of range in a parser that only the source names, a queue that stands while nothing runs, a
client that asks its own container, a reshaped cache of a fork, a server that listens on its loopback alone.

The four from `41 excerpts` on are two searches more, sealed in halves that are of the same kind, one text to each in
turn: excerpts, and texts of restarts, units and platforms, of which ten are composed. 82 of the 153 are of vLLM, of
which 75 were right; the others are of Ollama, llama.cpp, proxies and what stands under them, and are the weaker ones.
Before the second halves were run, four phrases had been learned from the first. The failures called harmless were two
starts of Ollama that find no card, at levels INFO and WARN alone, and a cache folder that the hub's client may not
write and goes on. The certain answers that were wrong are that folder's, and a start that failed before another one
that served. Mended: a driver's library that does not initialise, Ollama's wait for its runner, too little room in
/dev/shm in newer words of vLLM and Ray, an assertion in a kernel's source, a layer that lacks its scale, a tool call
that cannot be parsed, a proxy's health check. Left: a card that is not found at level INFO, a profile that an image
does not have, a state directory that systemd refuses, an offline script that ends below its output, a pod's events in
columns without its name.

The 58 and the 70 were run once these were learned, and once words that name a mechanism had become a guess in errors
that no entry knows; of the 128 that changed one answer, which was right with it. The 58 are excerpts as a search
showed them, labelled from what was read of their threads: of the 17 that were wrong four end before their decisive
line, and four are labelled by what the thread says and the text does not. The failures called harmless were a
container that ended with its user's login, a name that does not resolve while a client counts down its tries, and an
assertion of ggml in words of before, at the end of a log. The ordinary text that raised an alarm is a benchmark's
server whose resource tracker died with it. Mended: that assertion, a stack frame that is too large for a card, a model
class without pipelines, a range that a resumed download cannot have, a job that a driver gave up, an image that
compose cannot resolve. Left, for the sink's filter has no room for more words: a layer without a method for its
quantisation, pages of one size, no XPU by PyTorch's count, no memory left on Ascend; left too: placement groups that
wait, a hang that only a dump of its threads shows, a listing of ports.

The 137 and the 98 were asked for as a third and a fourth dev-2: each class as often as there, cut and labelled in the
same way, the clear ones in the order found, none picked for being hard. 182 of the 235 are of vLLM. Of the clean core
(of vLLM, not reconstructed, not of low confidence) 109 of 118 and 57 of 63 were right. Those of the 98 come from
repositories that were read whole and from threads without their answers; 59 of the 235 are one line or two. All 146
certain answers were right. The failures called harmless were a pod that is only listed as pending, a queue that stands
where nothing runs, in a poster's own lines, and a request that an old version refuses. The ordinary ones that raised
an alarm were an error that a connector overcomes by itself, in a log that leaves out where its server is up, and a
queue that had not drained when its benchmark ended. Mended: kernels that are warmed up, a layer that is split inside a
block, an image without the machine's architecture, the row of a pod that waits beside a ready one, a start that does
not come within its time, curl's 7, a stream that looks up what is not there, a folder that may not be written, a name
that does not resolve. Left: the queue, the connector, an eviction manager that finds nothing to evict, cards of
several kinds in one server, a segmentation fault in a kernel of a fork.

The 142 and the 65 were asked for in the same words; 113 and 58 are of vLLM, of the clean core 103 of 111 and 47 of 58
were right. Of the 142 the part on memory gave 34 of 35, that on checkpoints, formats, hub and flags 38 of 40, that on
platforms 27 of 33, that on serving 30 of 34. The look-ups ran out while the 65 were gathered: 31 of them come from what
repositories keep and from threads without their answers, of which 23 were right; of the other 34 it was 31. The one
certain answer that was wrong called a start healthy that a SIGTERM had ended while weights loaded: the traceback of the
signal itself had broken the silence that the rule asks for. The other failures called harmless were an image that
Docker looks for before it pulls, an import that finds no platform, three lines of a full pool of SGLang, and a request
that litellm refuses. The ordinary ones that raised an alarm were an autoscaler's own metrics and a parameter's new
name. Mended: all but Docker's line and litellm's, and the autoscaler's is `unknown` now; a warning that goes on
below its head, a flag that a launcher's note calls unknown, a request that is taken back again and again before an
empty cache, fields of a newer compressed-tensors, kernels of Ascend, a TPU without its topology. Left: tables of Normal
events, whose reasons and words may tell a failure all the same; the warnings of a collective test that ends well; a
call that a model wrote into its answer; a step that was given up behind one count of no tokens. Words that the phrases
of a class share with a line that nothing knows were tried as a guess over 516 earlier texts: right in 10 of 15 cases,
too few.

The 157 were asked for in the same words, of addresses that a search gave; 130 are of vLLM, of the clean core 118 of
128 were right. The part on memory gave 37 of 39, that on checkpoints, formats, hub and flags 40 of 43, that on
platforms 36 of 39, that on serving 31 of 36. Two certain answers were wrong: memory that ran out in `llm.generate`, of
which only the program's own frame tells that the start was over, and a rank of NCCL that opens shared memory which is
not there, taken for a /dev/shm that is too small. The failures called harmless were workers that wait a third and a
fourth time, between them the 200 of a stream that has no token yet; one count of no tokens before a step hangs; two
requests that wait at SGLang's pool at 0.99. The ordinary ones that raised an alarm were one such wait for a picture
that is then generated, a hub client's warning of a disk that reads 0 bytes while every file arrives, and a pod that
waits for a node which then comes. Mended: the two certain ones, the waits, an address that cannot be assigned, a
device that older versions do not find, a registry's error as newer Docker tells it, a probe's command that the image
lacks, a request that no kind of Ray's nodes fulfils, a model's file that may not be opened. Left: the count, the pool,
the disk and the node.

The 95 were asked for in the same words; 61 are of vLLM, of the clean core 56 of 61 were right. The look-ups ran out
while they were gathered, so many are a line or two, and the decisive line of some is that of a thread's title. 70 were
run first (64 right), the 25 on memory and load after the 70 were learned (22). No failure was called harmless, no
ordinary one raised an alarm, and all 56 certain answers were right. The misses were words that no rule knew: an
argument that an old Python names without its class, a router's name, a template's file, HBM as a JAX program tells it,
all mended; mended besides: a card that another process fills before this one has allocated anything, and PyTorch that
reaches no CUDA where vLLM finds no platform. Left: an autoscaler's table, curl's 503 of a server that hangs, a silence
before somebody interrupts.

Both corpora were then crossed with 41 more wrappers, and their failures with fourteen last lines at four places of a
healthy log; 142 ends that shells, supervisors, runtimes and platforms write were put below healthy logs. A launcher
that logs what its server prints as notes of its own took the class of 110 of 334 (56 became benign, 5 another with
certainty); 36 lose it since, short texts without a level of their own. 41 of the ends were benign: what nobody asked
for is told or unknown since. The newest 220 phrases in sixteen lines that only show them, in a log that serves on,
raised up to 90 alarms a line. They do so still, and where a command, a test, a counter of none or a sentence shows
them, not with certainty: rules that left such lines out called dead servers harmless, for a launcher, an operator or a
person reports in the same words. Left out are rule files and help texts alone, and a log in which one names a failure
is `unknown`.

Still answered wrong: an engine that did not wake from its sleep and served again, a controller's notes in JSON, a
table of a benchmark, a parser that only the quoted source names, a test script's list of steps, a journal of a server
that found no device and went on without, an app whose last line has no level and does not say that it is up, a tool
that says it will try again and never does, a failure that a launcher passes on in one line as its own note, a start
that a log cuts into one that serves, one that says what its draft model does not support and ends without a word. Of
an exhausted card without a word of its phase the class is a guess; that a lower share is tried first was right for 14
of 17, and where PyTorch holds all of it but half a GiB a smaller model is tried first now. Where no event says that
the pod was told to end, or that one start is meant, a text with a failed probe still reads as a failure. A shutdown
of the node reads as capacity taken back. That a rank's coordinator is gone proves nothing by itself and is `unknown`.
For false alarms some 1,800 more logs were read, without labels.

Of other services, 62 ordinary logs (gateways, embeddings and web servers, databases, Ray's workers, containers of two
compose files) and 12 that show a failure were labelled before the run: the first run called 30 of the 62 harmless, 24
`unknown`, and 8 a failure, two of them with certainty (`nativeaccess` was read as `EACCES`, and a file that llama.cpp
can do without as a missing model); 14 of 16 certain answers were right, no failure was called harmless. A program that
no rule knows is harmless since then, never with certainty, where it says that it is up or did what it was asked, each
of several that a collector names, and no line of another kind stands below: 49 lines of trouble that no rule knows, set
below eleven such logs, are not harmless once. Of 12 others, held back until then, the first run called none harmless,
10 `unknown` and 2 a failure, on a guess from words; of 4 failures beside them none harmless.

What stands around a server was written down in the words of programs that no rule knows, after public threads: proxies,
routers, orchestrators, operators, autoscalers, clouds, storage, networks, servers in eight languages. Of 105, labelled
and sealed before the run, 71 failures and 34 ordinary ones, the first run gave 72 a right class and called 23 failures
harmless, two of them with certainty (a model that Triton could not load beside one that is ready, a replica that is
not ready beside one that answers); 10 of the ordinary were `unknown`. Since then who is down is not excused by who is
well, and a log of mere notes is harmless only where none tells a failure in known words and the last one tells of
ordinary work. Of 47 others after the first half of this, 32 failures, 35 were right, 7 failures harmless and 6 ordinary
ones `unknown`; of 31 written to deceive it, 16 failures, 19, 6 and 7: none with certainty. Of these 119 failures 2 are
called harmless now, of the 64 ordinary ones 12 are `unknown`: words that nobody has written down cannot be told apart.

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

A fifth reading, before the 51 of the table, took no draw. The texts of 27 sources (vLLM 0.18, 0.24 and 0.30,
transformers 5.24, huggingface_hub 2.4, torch 2.11, Ray 2.60, triton, FlashInfer, FlashAttention, bitsandbytes,
compressed-tensors, LMCache, NIXL, NCCL, RCCL, HIP, safetensors, tokenizers, NVIDIA's toolkit, plugin and modules,
containerd, CRI-O, runc, Docker, Slurm) went through the classifier with the prefixes that print them: some 40,000
errors, read where they were certain or harmless, and some 9,000 notes and warnings at three places of a healthy log.
364 lines as a kubelet, Docker, systemd, the kernel, Slurm, NCCL, UCX or the hub client print them, written down with
their class, gave 315 right at first. Mended since: a level that klog, glog or logfmt spells, a launcher's child that
failed and was taken for NCCL, the memory of a kernel's tile for /dev/shm, a daemon that does not answer for an image,
an end of Slurm's step for a stop with certainty, the hub client's newer words for a server's error, what transformers
raises outside its models. The 51 are excerpts of threads as a search gave them, the first that name what happened for
each of 14 questions; 28 labels allow several classes, 11 of them `unknown`. Of the 8 ordinary, one raised an alarm,
of a class that its label allows: Ray's warning of a small /dev/shm.
"""

SOURCES_HEAD = """## Texts of the last sets

Labels as given before the first run; `composed` are texts put together from public ones: several replicas, restarts,
scale-ins. The texts themselves are not kept here.

| read from | class | first fix | learned from it |
|---|---|---|---|"""


def render() -> str:
    """The whole page as Markdown: the first runs, and what the last sets were read from with their labels."""
    rows = tomllib.loads((Path(__file__).parent / "read_texts.toml").read_text(encoding="utf-8"))["text"]
    return "\n".join(
        [
            HEAD,
            SOURCES_HEAD,
            *(f"| {row['from']} | {row['class']} | {row['fix']} | {row.get('learned', '')} |" for row in rows),
            "",
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(render())
