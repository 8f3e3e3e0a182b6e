"""What may be changed: bounds whatever the plan says, modes, approvers, and mistakes told all at once."""

import re
from pathlib import Path

import pytest

from agent.catalogue.load_bundled import load_default_policy
from agent.core.decision.decision import Channel
from agent.core.decision.policy import NEVER_FLAGS, Approver, Mode, Policy, Rule, parse_policy
from agent.core.decision.rule import KINDS
from agent.core.decision.selector import selects
from agent.core.plan.action import (
    ForPerson,
    Lifecycle,
    LifecycleOperation,
    Restart,
    SetAccelerator,
    SetConcurrency,
    SetEnv,
    SetFlag,
    SetLivenessProbe,
    SetModel,
    SetResources,
    SetScaling,
    SetStartupProbe,
    SetVolumeOptions,
)
from agent.core.service.serving import EnvVar, Probe, ServingConfig
from agent.errors import PolicyRefused, SettingsRejected

DEFAULT = load_default_policy()
ALLOWED = [
    SetFlag(name="max_model_len", value="8192"),
    SetFlag(name="enforce-eager", value=""),
    SetFlag(name="limit-mm-per-prompt", value='{"image":0}'),
    SetFlag(name="max-num-seqs", value=None),
    SetEnv(name="VLLM_ENGINE_READY_TIMEOUT_S", value="900"),
    SetStartupProbe(probe=Probe(period_s=15, failure_threshold=100)),
    SetScaling(min_instances=0, max_instances=4),
    SetConcurrency(concurrency=8),
    SetResources(cpu=8, memory_mib=32768),
    Restart(),
]
REFUSED = [
    SetFlag(name="trust-remote-code", value=""),
    SetFlag(name="trust_remote_code", value=""),
    SetFlag(name="tool-parser-plugin", value="x"),
    SetFlag(name="chat-template", value="x"),
    SetFlag(name="port", value="70000"),
    SetFlag(name="max-model-len", value="8192 --trust-remote-code"),
    SetFlag(name="max-model-len", value="8192\n--trust-remote-code"),
    SetFlag(name="tool-call-parser", value="/tmp/evil.py"),
    SetFlag(name="distributed-executor-backend", value="evil.module.Executor"),
    SetFlag(name="load-format", value="dummy"),
    SetFlag(name="model", value="other"),
    SetEnv(name="HF_TOKEN", value="x"),
    SetEnv(name="LD_PRELOAD", value="/x.so"),
    SetEnv(name="PYTHONPATH", value="/x"),
    SetEnv(name="VLLM_LOGGING_LEVEL", value="x" * 600),
    SetStartupProbe(probe=Probe(period_s=240, failure_threshold=100)),
    SetLivenessProbe(probe=None),
    SetScaling(min_instances=0, max_instances=5),
    SetScaling(min_instances=3, max_instances=2),
    SetConcurrency(concurrency=1000).model_copy(update={"concurrency": 1001}),
    SetResources(cpu=0, memory_mib=1),
    SetResources(cpu=4, memory_mib=10**9),
    SetAccelerator(accelerator="nvidia-h100-80gb", cpu=20, memory_mib=81920),
    SetModel(model="evil/model"),
    SetVolumeOptions(volume="v", options=("allow_other",)),
]


@pytest.mark.parametrize("action", ALLOWED, ids=repr)
def test_the_default_policy_allows_what_plans_need(action):
    DEFAULT.check((action,))


@pytest.mark.parametrize("action", REFUSED, ids=repr)
def test_no_approval_can_allow_what_is_out_of_bounds(action):
    with pytest.raises(PolicyRefused):
        DEFAULT.check((action,))


@pytest.mark.parametrize("action", [a for a in ALLOWED if not isinstance(a, Restart)][:5], ids=repr)
def test_an_empty_list_allows_nothing(action):
    with pytest.raises(PolicyRefused):
        Policy().check((action,))


def test_nothing_is_automatic_and_nobody_approves_by_default():
    assert not DEFAULT.rules
    assert not DEFAULT.approvers
    assert DEFAULT.mode("any", (Restart(),)) is Mode.PERSON


@pytest.mark.parametrize("name", sorted(NEVER_FLAGS))
def test_a_policy_that_lists_what_none_can_allow_is_a_mistake(name):
    with pytest.raises(SettingsRejected, match="no policy can allow it"):
        parse_policy(f"[flags]\n{name} = 'switch'\n")


@pytest.mark.parametrize("name", ["HF_TOKEN", "http_proxy", "AWS_SECRET_ACCESS_KEY", "VLLM_PLUGINS", "LD_LIBRARY_PATH"])
def test_a_variable_with_a_credential_or_code_is_a_mistake(name):
    with pytest.raises(SettingsRejected, match="no policy can allow it"):
        parse_policy(f"[env]\n{name} = 'word'\n")


def test_the_first_row_that_matches_decides_and_the_strictest_action_counts():
    rules = (
        Rule(services=("gemma4-*",), kinds=("set_scaling",), mode=Mode.NEVER),
        Rule(services=("gemma4-*",), kinds=("set_*", "restart"), mode=Mode.AUTOMATIC),
    )
    policy = Policy(rules=rules)
    scale, flag = SetScaling(min_instances=0, max_instances=2), SetFlag(name="x", value="")
    assert policy.mode("gemma4-26b", (flag, Restart())) is Mode.AUTOMATIC
    assert policy.mode("gemma4-26b", (flag, scale)) is Mode.NEVER
    assert policy.mode("gemma4-26b", (flag, ForPerson(action="fix_quota", instruction="ask"))) is Mode.PERSON
    assert policy.mode("qwen", (flag,)) is Mode.PERSON
    assert policy.mode("gemma4-26b", ()) is Mode.PERSON


@pytest.mark.parametrize(
    "patterns", [(), ("",), ("*",), ("**",), ("?*",), ("[a-z]*",), ("[!x]*",), ("*[]x]?",), ("other",)]
)
def test_an_empty_selector_selects_nothing(patterns):
    assert not selects(patterns, "gemma4-26b")
    assert not selects(patterns, "")


@pytest.mark.parametrize(
    "text",
    [
        '[[rules]]\nkinds = ["restart"]\nmode = "automatic"',
        '[[rules]]\nservices = []\nkinds = ["restart"]\nmode = "automatic"',
        '[[rules]]\nservices = ["*"]\nkinds = ["restart"]\nmode = "automatic"',
        '[[rules]]\nservices = ["*"]\nkinds = ["restart"]\nmode = "never"',
        '[[rules]]\nservices = ["a"]\nkinds = ["*"]\nmode = "automatic"',
        '[[rules]]\nservices = ["[a-z]*"]\nkinds = ["restart"]\nmode = "automatic"',
        '[[rules]]\nservices = ["a"]\nkinds = ["[!x]*"]\nmode = "automatic"',
        '[[approvers]]\nname = "Ada"\nslack = "U01"\nservices = ["*"]',
        'volume_options = ["*"]',
        "change_window_s = 1e300",
        "changes_per_hour = 9999999999",
        "[env]\nLD_AUDIT = 'word'",
        "[env]\nHF_ENDPOINT = 'word'",
        "[env]\nBASH_ENV = 'word'",
        '[[rules]]\nservices = ["a"]\nkinds = ["redeploy"]\nmode = "automatic"',
        '[[rules]]\nservices = ["a"]\nkinds = ["for_person"]\nmode = "automatic"',
        '[[rules]]\nservices = ["a"]\nkinds = ["restart"]\nmode = "always"',
        '[[approvers]]\nname = "Ada"\nservices = ["a"]',
        '[[approvers]]\nname = "Ada"\nslack = "ada"\nservices = ["a"]',
        '[[approvers]]\nname="A"\nslack="U01"\n[[approvers]]\nname="B"\nslack="U01"',
        "changes_per_hour = -1",
        "change_window_s = 0",
        "chnages_per_hour = 4",
        "[flags]\nmax-model-len = 'anything'",
        "rules = 'all'",
        "= 1",
    ],
)
def test_a_policy_in_doubt_is_no_policy(text):
    with pytest.raises(SettingsRejected):
        parse_policy(text, default=DEFAULT)


def test_a_word_in_the_place_of_a_list_says_what_is_wanted():
    with pytest.raises(SettingsRejected, match=r"approvers.0.services: want a list, such as \['gemma4-\*'\]"):
        parse_policy('[[approvers]]\nname = "Ada"\nslack = "U01"\nservices = "gemma"')


def test_all_mistakes_are_told_at_once():
    text = """
changes_per_hour = -1
color = "red"
[[rules]]
services = ["*"]
kinds = ["redeploy"]
mode = "always"
[[approvers]]
name = "Ada"
slack = "@ada"
[flags]
trust-remote-code = "switch"
"""
    with pytest.raises(SettingsRejected) as caught:
        parse_policy(text)
    assert "policy.toml has 7 mistakes" in str(caught.value)
    for word in ("changes_per_hour", "color", "services", "kinds", "mode", "slack", "trust-remote-code"):
        assert word in caught.value.why


def test_a_file_replaces_what_it_names_and_keeps_the_rest():
    policy = parse_policy("changes_per_hour = 1\n[flags]\nmax-model-len = 'whole 1..9'", default=DEFAULT)
    assert policy.changes_per_hour == 1
    assert policy.flags == {"max-model-len": "whole 1..9"}
    assert policy.env == DEFAULT.env
    assert policy.digest != DEFAULT.digest


def test_an_approver_is_known_only_as_the_channel_proves_them():
    ada = Approver(name="Ada", slack="U0ADA", webhook="pager", email="Ada@Example.com", services=("a",))
    policy = Policy(approvers=(ada,))
    assert policy.approver(Channel.SLACK, "U0ADA") is ada
    assert policy.approver(Channel.WEBHOOK, "pager") is ada
    assert policy.approver(Channel.CONSOLE, "ada@example.com") is ada
    for channel, who in [
        (Channel.SLACK, "Ada"),
        (Channel.SLACK, "ada@example.com"),
        (Channel.SLACK, ""),
        (Channel.WEBHOOK, "U0ADA"),
        (Channel.CONSOLE, "pager"),
        (Channel.POLICY, "Ada"),
    ]:
        assert policy.approver(channel, who) is None


def test_every_kind_of_action_can_be_named_in_a_rule():
    assert {"set_flag", "set_env", "restart", "set_model", "set_scaling"} <= KINDS
    assert "for_person" not in KINDS


def test_the_page_names_every_key_and_kind_and_its_example_is_a_policy():
    page = (Path(__file__).resolve().parents[4] / "docs" / "policy.md").read_text()
    named = set(re.findall(r"`([a-z_]+)`", page))
    assert set(Policy.model_fields) <= named
    assert named >= KINDS
    example = re.search(r"```toml\n(.*?)```", page, re.DOTALL).group(1)
    policy = parse_policy(example, default=DEFAULT)
    assert policy.rules[0].mode is Mode.AUTOMATIC
    assert policy.approvers[0].name == "Ada"


STOP = Lifecycle(operation=LifecycleOperation.STOP)
DELETE = Lifecycle(operation=LifecycleOperation.DELETE, confirmed="gemma")


@pytest.mark.parametrize("action", [STOP, DELETE, SetScaling(min_instances=0, max_instances=0)], ids=str)
def test_a_service_is_stopped_or_deleted_only_where_the_policy_names_it(action):
    """Off by default, by name, and never for a service that nobody named."""
    named = Policy(lifecycle=("gemma",))
    named.check((action,), "gemma")
    for policy, service in [(Policy(), "gemma"), (named, "gemma-2"), (named, "")]:
        with pytest.raises(PolicyRefused, match="does not name"):
            policy.check((action,), service)


def test_a_lifecycle_is_never_automatic_and_can_be_forbidden():
    everything = Rule(services=("gemma*",), kinds=("set_*", "restart", "lifecycle"), mode=Mode.AUTOMATIC)
    automatic = Policy(rules=(everything,), lifecycle=("gemma",))
    assert automatic.mode("gemma", (Restart(),)) is Mode.AUTOMATIC
    for action in (STOP, DELETE, SetScaling(min_instances=0, max_instances=0)):
        assert automatic.mode("gemma", (Restart(), action)) is Mode.PERSON
    never = Rule(services=("gemma*",), kinds=("lifecycle",), mode=Mode.NEVER)
    assert Policy(rules=(never, everything), lifecycle=("gemma",)).mode("gemma", (STOP,)) is Mode.NEVER


@pytest.mark.parametrize("typed", ["", "gemm", "gemma-2", "Gemma"])
def test_a_deletion_wants_the_name_typed(typed):
    policy = Policy(lifecycle=("gemma",))
    with pytest.raises(PolicyRefused, match="wants the name of the service typed"):
        policy.check((DELETE.with_(confirmed=typed),), "gemma")


def test_a_creation_and_a_start_keep_the_bounds():
    policy = Policy(lifecycle=("gemma",), max_instances=2, accelerators=("nvidia-l4",))
    config = ServingConfig(image="vllm", accelerator="nvidia-l4", max_instances=2)
    create = Lifecycle(operation=LifecycleOperation.CREATE, config=config)
    policy.check((create,), "gemma")
    wrongs = (
        {"max_instances": 3},
        {"accelerator": "nvidia-h100-80gb"},
        {"args": ("--trust-remote-code",)},
        {"env": (EnvVar(name="HF_TOKEN", secret="hf"),)},
    )
    for wrong in wrongs:
        with pytest.raises(PolicyRefused):
            policy.check((create.with_(config=config.with_(**wrong)),), "gemma")
    sizes = {"cpu": 32, "memory_mib": 262_144, "concurrency": 1000, "startup_probe": Probe(period_s=15)}
    policy.check((create.with_(config=config.with_(**sizes)),), "gemma")
    with pytest.raises(PolicyRefused, match="above the limit"):
        policy.check((Lifecycle(operation=LifecycleOperation.START, max_instances=3),), "gemma")


LARGE = {
    "CPUs": ({"cpu": 32.5}, "32.5 CPUs are outside"),
    "memory": ({"cpu": 4, "memory_mib": 262_145}, "4 CPUs and 262145 MiB are outside"),
    "requests at once": ({"concurrency": 1001}, "1001 requests at once are above"),
    "probe": ({"startup_probe": Probe(period_s=15, failure_threshold=121)}, "a probe budget of 1815 s is above 1800 s"),
}


@pytest.mark.parametrize(("size", "says"), LARGE.values(), ids=LARGE)
def test_what_is_created_is_held_to_the_same_sizes_as_what_is_changed(size, says):
    config = ServingConfig(image="vllm").with_(**size)
    create = Lifecycle(operation=LifecycleOperation.CREATE, config=config)
    with pytest.raises(PolicyRefused, match=says):
        Policy(lifecycle=("gemma",)).check((create,), "gemma")


@pytest.mark.parametrize("name", ["*", "gemma*", "", "GEMMA"])
def test_a_pattern_names_no_service_for_lifecycle(name):
    with pytest.raises(SettingsRejected, match="in full"):
        parse_policy(f'lifecycle = ["{name}"]\n')
