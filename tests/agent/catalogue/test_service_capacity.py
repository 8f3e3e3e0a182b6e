"""The arithmetic, bound to watched services."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from agent.app.catalogues import read_capacity
from agent.catalogue.load_fit import load_fit_catalogue
from agent.catalogue.load_platforms import load_platform_catalogue
from agent.catalogue.service_capacity import ServiceCapacity
from agent.core.plan.capacity import StartUp
from agent.core.service.services import Services, parse_services
from agent.core.service.serving import ServingConfig, Volume
from agent.fit.checkpoint.checkpoint import ModelProfile
from agent.fit.speed.calibration import Kind, Measurement

ROOT = Path(__file__).resolve().parents[3]
MODEL = "google/gemma-4-31B-it-qat-w4a16-ct"
PATH = "/mnt/models/gemma-4-31B-it-qat-w4a16-ct"
TEXT = f"""
[[service]]
name = "s"
platform = "cloud_run"
project = "p"
location = "us-east4"
model = "{MODEL}"
checkpoint = "{PATH}"
mounts = {{ "/mnt/models" = "gs://bucket" }}
accelerator = "nvidia-l4"
vllm = "0.23"
owner = "console"

[service.needs]
context = 4096
users = 1
"""


@pytest.fixture(scope="module")
def services() -> Services:
    return parse_services(TEXT)


def config(*flags: str, model: str = PATH) -> ServingConfig:
    return ServingConfig(
        args=("serve", model, *flags),
        accelerator="nvidia-l4",
        memory_mib=16384,
        volumes=(Volume(name="v", mount_path="/mnt/models", bucket="bucket"),),
    )


def test_a_speed_that_was_measured_here_is_what_a_plan_expects(services: Services) -> None:
    """Three shares that agree replace the bundled range in a plan's fit, in its speed and in the options; two do not."""
    measured = [
        Measurement(
            id=f"m-{number}", kind=Kind.BANDWIDTH_SHARE, family="gemma-4", accelerator="nvidia-l4", vllm="0.23",
            value=0.70, at="2026-11-22", model=MODEL, source="a sweep",
        )
        for number in range(3)
    ]  # fmt: skip
    fits = ServiceCapacity(
        services, load_fit_catalogue(), load_platform_catalogue(), measurements=lambda: tuple(measured)
    )
    asked = config("--max-model-len", "4096", "--gpu-memory-utilization", "0.93")
    by_here, bundled = fits.speed("s", asked), read_capacity(services).speed("s", asked)
    assert by_here is not None
    assert bundled is not None
    assert by_here[1] / by_here[0] == pytest.approx(1.1 / 0.9)
    assert bundled[1] / bundled[0] > 1.5
    assert fits.assess("s", asked).report["ranges"]["decode_tokens_per_s"] == pytest.approx(by_here, rel=0.01)
    assert fits.decode_tokens_per_s("s", asked) == pytest.approx((by_here[0] * by_here[1]) ** 0.5)
    assert fits.assess("s", asked).sentence == read_capacity(services).assess("s", asked).sentence
    measured.pop()
    assert fits.speed("s", asked) == bundled


def test_a_mounted_path_is_the_watched_model(services: Services) -> None:
    """The path that is served means what services.toml names; the load peak of the output head is seen."""
    word = read_capacity(services).assess("s", config("--max-model-len", "4096", "--gpu-memory-utilization", "0.95"))
    assert word.fits is False
    assert word.reason == "load_peak"


def test_a_profile_read_from_the_checkpoint_wins(services: Services) -> None:
    """The place where it was read is the mounted one: its exact figures replace the bundled entry's."""
    catalogue = load_fit_catalogue()
    smaller = replace(catalogue.models.find("google/gemma-4-12B-it-qat-w4a16-ct"), name="own")
    source = "gs://bucket/gemma-4-31B-it-qat-w4a16-ct"
    profile = ModelProfile(
        name="own", source=source, read_at="2026-11-21", facts=smaller, dtype_bytes=(), tensors=1, shards=1
    )
    fits = ServiceCapacity(services, catalogue, load_platform_catalogue(), profiles=lambda: (profile,))
    plain = read_capacity(services).report("s", config("--max-model-len", "4096"))
    exact = fits.report("s", config("--max-model-len", "4096"))
    assert plain.weights_bytes is not None
    assert exact.weights_bytes is not None
    assert exact.weights_bytes.best < plain.weights_bytes.best / 2
    other = config(model="google/gemma-4-E2B-it")
    assert fits.report("s", other).weights_bytes == read_capacity(services).report("s", other).weights_bytes


def test_an_unknown_model_is_not_computed_and_says_why(services: Services) -> None:
    """Never a guess."""
    word = read_capacity(services).assess("s", config(model="nobody/knows-this-9B"))
    assert word.fits is None
    assert word.report is None
    assert "not computed" in word.sentence
    assert "nobody/knows-this-9B" in word.sentence


def test_options_keep_what_the_owner_needs(services: Services) -> None:
    """Each option fits, serves the needed context, and says what it costs."""
    options = read_capacity(services).options(
        "s", config("--max-model-len", "4096", "--gpu-memory-utilization", "0.95")
    )
    assert options
    assert all(o.fit.fits is True for o in options)
    here = [o for o in options if o.elsewhere is None]
    assert here
    assert all("max-model-len" not in o.flags for o in here)
    assert all(o.note for o in here)


def test_a_failed_size_is_named(services: Services) -> None:
    """2.62 GiB of a 31B is the output head; a size that is nothing is not named."""
    fits = read_capacity(services)
    assert "262144 x 5376" in (fits.allocation("s", None, 2.62) or "")
    assert fits.allocation("s", None, 0.77) is None


def test_the_start_takes_the_longer_of_seen_and_computed(services: Services) -> None:
    """A slow start that was seen is never shortened by arithmetic."""
    fits = read_capacity(services)
    computed = fits.start_up("s", config(), seen_s=None)
    assert computed is not None
    assert fits.start_up("s", config(), seen_s=computed.seconds + 500) == StartUp(seconds=computed.seconds + 500)
    assert fits.start_up("s", config(), seen_s=1) == computed


def test_the_parts_that_are_told_add_up_to_the_start(services: Services) -> None:
    """Loading, compiling and the rest are the whole."""
    computed = read_capacity(services).start_up("s", config(), seen_s=None)
    assert computed is not None
    parts = [float(part.replace(",", "")) for part in re.findall(r": ([\d,]+) s", computed.says)]
    assert len(parts) == 3
    assert sum(parts) == computed.seconds


def test_the_price_is_that_of_the_instances_own_memory_and_cpus(services: Services) -> None:
    """Cloud Run bills the parts: (0.0001867 + 4 x 0.000018 + 16 x 0.000002) x 3,600 s = 1.0465; 8 and 32: 1.4209.

    12B QAT of seed 001 ran with 4 vCPU and 16 GiB, 26B QAT with 4 and 32: (0.0001867 + 0.000072 + 0.000064) x 3,600.
    """
    fits = read_capacity(services)
    assert fits.cost_usd_per_h("s", config()) == pytest.approx(1.0465, abs=1e-4)
    assert fits.cost_usd_per_h("s", config().with_(cpu=8, memory_mib=32768)) == pytest.approx(1.4209, abs=1e-4)
    assert fits.cost_usd_per_h("s", config().with_(cpu=4, memory_mib=32768)) == pytest.approx(1.1617, abs=1e-4)


@pytest.mark.parametrize(
    ("platform", "usd_per_h"),
    [
        pytest.param('"ec2"', 0.9776, id="g6.2xlarge, by its 32 GiB"),
        pytest.param('"kubernetes"', 0.7068, id="priced as GKE: 32 GiB lie between, the usual one wins"),
        pytest.param('"host"', None, id="a host of one's own"),
        pytest.param('"container_apps"', None, id="Container Apps rents no L4"),
        pytest.param('"host"\nusd_per_h = 0.21', 0.21, id="as services.toml says"),
        pytest.param('"kubernetes"\nusd_per_h = 0.55', 0.55, id="a cluster with a price of its own"),
    ],
)
def test_the_price_is_that_of_the_platform_where_it_runs(platform: str, usd_per_h: float | None) -> None:
    """An EC2 instance does not cost what Cloud Run costs; what nobody knows is no other platform's price."""
    text = TEXT.replace('"cloud_run"\nproject = "p"\nlocation = "us-east4"', platform)
    fits = read_capacity(parse_services(text))
    assert fits.cost_usd_per_h("s", config().with_(memory_mib=32768)) == usd_per_h


def test_a_price_of_ones_own_is_of_the_declared_accelerator_alone() -> None:
    """Else a dearer card would cost the same, and no budget would be asked."""
    text = TEXT.replace('"cloud_run"\nproject = "p"\nlocation = "us-east4"', '"kubernetes"\nusd_per_h = 0.55')
    fits = read_capacity(parse_services(text))
    assert fits.cost_usd_per_h("s", config()) == 0.55
    assert fits.cost_usd_per_h("s", config().with_(accelerator="nvidia-h100-80gb")) is None
    assert fits.cost_usd_per_h("s", config().with_(accelerator_count=2)) is None


def test_the_price_of_an_unknown_shape_is_unknown(services: Services) -> None:
    fits = read_capacity(services)
    assert fits.cost_usd_per_h("s", ServingConfig()) is None
    assert fits.cost_usd_per_h("s", ServingConfig(accelerator="nvidia-b300")) is None
    assert fits.cost_usd_per_h("nobody", config()) is None


@pytest.mark.parametrize("command", [(), ("vllm",)], ids=["entry point", "program"])
def test_flags_in_the_command_count(services: Services, command: tuple[str, ...]) -> None:
    """Words are the server's wherever they stand: the same answer, and the same refusal of what does not fit."""
    flags = ("--max-model-len", "4096", "--gpu-memory-utilization", "0.95")
    apart = config(*flags)
    whole = apart.with_(command=("vllm", *apart.args), args=())
    fits = read_capacity(services)
    assert fits.assess("s", whole) == fits.assess("s", apart.with_(command=command))
    assert fits.assess("s", whole).fits is False


@pytest.mark.parametrize(
    ("command", "args", "says"),
    [
        (("sh", "-c"), (f"vllm serve {PATH} --max-model-len 9000000",), "a shell line starts the server"),
        (("/start.sh",), (), "'/start.sh' starts the server"),
        ((), ("serve", PATH, "--kv-cache-dtype", "$(KV)"), "the platform fills in '$(KV)'"),
    ],
    ids=["shell", "script", "expansion"],
)
def test_flags_that_nobody_can_read_are_not_taken_for_absent(
    services: Services, command: tuple[str, ...], args: tuple[str, ...], says: str
) -> None:
    """Nothing is computed with defaults that may not hold, and nothing is proposed on such a ground."""
    hidden = config().with_(command=command, args=args)
    word = read_capacity(services).assess("s", hidden)
    assert word.fits is None
    assert says in word.sentence
    assert read_capacity(services).options("s", hidden) == ()


def test_a_move_is_typed_where_the_platform_rents_it_in_one_piece(services: Services) -> None:
    """Another card comes with the CPU and memory of its shape here; what runs already is left out."""
    options = read_capacity(services).options("s", config("--max-model-len", "4096"))
    moves = [o.move for o in options if o.elsewhere is not None and o.move is not None]
    cards = {m.accelerator: (m.cpu, m.memory_mib) for m in moves if m.accelerator is not None}
    assert cards == {"nvidia-rtx-pro-6000": (20.0, 80 * 1024)}
    assert all(m.model != MODEL for m in moves)
    assert all(o.move is None for o in options if o.elsewhere is None)


class TestContainerMemory:
    """The load against the container's limit; where a part is not known it is not computed."""

    def test_a_mounted_checkpoint_larger_than_the_container_suffices(self, services: Services) -> None:
        """What is mapped is page cache; recorded for a checkpoint of 16.44 GB in 16,384 MiB."""
        found = read_capacity(services).container("s", config())
        assert found.fits is True
        assert found.figures[0].value == "16.0 GiB"

    def test_pinned_offload_counts_at_its_pessimistic_end(self, services: Services) -> None:
        fits = read_capacity(services)
        assert fits.container("s", config("--cpu-offload-gb", "8")).fits is None
        more = config("--cpu-offload-gb", "8").with_(memory_mib=32_768)
        assert fits.container("s", more).fits is True

    def test_a_download_on_cloud_run_lies_in_memory(self, services: Services) -> None:
        """Its file system is the container's memory."""
        found = read_capacity(services).container("s", config(model=MODEL))
        assert found.fits is False
        assert any(figure.name == "Checkpoint files in memory" for figure in found.figures)

    def test_a_limit_that_nobody_knows_proves_nothing(self, services: Services) -> None:
        found = read_capacity(services).container("s", config().with_(memory_mib=None))
        assert found.fits is None
        assert "not known" in found.sentence

    def test_flags_in_a_shell_line_prove_nothing(self, services: Services) -> None:
        hidden = config().with_(command=("sh", "-c"), args=("vllm serve m",))
        assert read_capacity(services).container("s", hidden).fits is None


@pytest.mark.parametrize("name", ["a100", "h100", "nvidia-a100"])
def test_a_name_that_covers_several_sizes_proves_nothing(services: Services, name: str) -> None:
    """A doubtful accelerator is not computed, so a plan that takes memory has no proof."""
    word = read_capacity(services).assess("s", config("--max-model-len", "4096").with_(accelerator=name))
    assert word.fits is None
    assert "not computed" in word.sentence.lower()


def test_what_a_change_takes_away_names_losses_speed_and_the_given_prices(services: Services) -> None:
    """The context shrinks and offload slows it down; the prices are the caller's, who knows how many run."""
    fits = read_capacity(services)
    after = config("--max-model-len", "4096", "--cpu-offload-gb", "8", "--language-model-only")
    line = fits.takes_away("s", config("--max-model-len", "8192"), after, usd_per_h=(1.42, 2.84))
    assert line.startswith("loses images; 8,192 -> 4,096 tokens of context; ")
    assert line.endswith(" tokens/s; 1.42 -> 2.84 USD/h")


def test_more_requests_than_the_cache_holds_are_said_to_wait(services: Services) -> None:
    """By the server's flag and by the platform's setting; what is not stated lets in no more than before."""
    fits = read_capacity(services)
    flags = ("--max-model-len", "16384", "--language-model-only", "--cpu-offload-gb", "6")
    few = config(*flags, "--max-num-seqs", "2", "--max-num-batched-tokens", "1024")
    many = few.with_(args=tuple("64" if word == "2" else word for word in few.args))

    def line(before: ServingConfig, after: ServingConfig) -> str:
        return fits.takes_away("s", before, after, usd_per_h=(None, None))

    assert fits.assess("s", many).fits is True
    held = re.search(
        r"^64 requests at once are let in, the KV cache holds (\d+) of full length: .* wait$", line(few, many)
    )
    assert held is not None, line(few, many)
    assert int(held[1]) < 64
    assert "let in" not in line(many, few)
    assert line(many.with_(concurrency=1), many.with_(concurrency=64)) == line(few, many)
    assert line(few, few) == "loses nothing"


def test_of_an_unknown_model_context_and_price_are_known(services: Services) -> None:
    """Nothing is made up."""
    before, after = (config("--max-model-len", n, model="org/unknown") for n in ("131072", "32640"))
    line = read_capacity(services).takes_away("s", before, after, usd_per_h=(None, None))
    assert line == "131,072 -> 32,640 tokens of context"


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--max-model-len", "2048"), "2,048 tokens of context, 4,096 are needed"),
        (("--max-model-len", "4096", "--cpu-offload-gb", "14"), "tokens/s, 5 are needed"),
        (("--max-model-len", "4096"), ""),
    ],
)
def test_a_need_that_is_missed_is_named(services: Services, flags: tuple[str, ...], says: str) -> None:
    """Five tokens per second are needed where nobody stated a need."""
    found = read_capacity(services).misses("s", config(*flags))
    assert found.endswith(says)
    assert bool(found) == bool(says)


def test_a_type_of_machine_is_known_by_name_and_priced_by_it(services: Services) -> None:
    """EC2's types are entries of prices.toml; a platform without types by name has none."""
    on_ec2 = parse_services({"service": [{"name": "s", "platform": "ec2", "model": MODEL, "accelerator": "nvidia-l4",
                                          "owner": "console"}]})  # fmt: skip
    capacity = read_capacity(on_ec2)
    found = capacity.instance_type("s", "g6.2xlarge")
    assert found is not None
    assert (found.accelerator, found.cpu, found.memory_mib) == ("nvidia-l4", 8, 32_768)
    assert capacity.instance_type("s", "m7i.large") is None
    assert read_capacity(services).instance_type("s", "g6.2xlarge") is None
    bigger = config().with_(instance_type="g6.4xlarge", memory_mib=16_384)
    assert capacity.cost_usd_per_h("s", bigger) == 1.3232
