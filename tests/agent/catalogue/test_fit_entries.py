"""Entries become values with units, or are refused."""

import pytest

from agent.catalogue.fit_entries import (
    accelerator_from_entry,
    flag_versions,
    model_from_entry,
    scheme_from_entry,
    sibling_of,
    variant_of,
    version_from_entry,
)
from agent.catalogue.load_fit import load_fit_catalogue
from agent.fit.bounds import GIB

CARD = {
    "name": "x", "kind": "cuda", "total_gib": [1, 2, 3], "compute_capability": [8, 9], "bandwidth_gb_per_s": 300,
    "pcie_gb_per_s": 12, "context_gib": [0, 0, 1], "source": "s", "date": "2026-11-21",
}  # fmt: skip


def test_gib_become_bytes_and_gb_per_s_bytes_per_s():
    facts = accelerator_from_entry(CARD)
    assert facts.total_bytes.best == 2 * GIB
    assert facts.bandwidth_bytes_per_s == 300 * 10**9
    assert facts.supports((8, 9))
    assert not facts.supports((9, 0))


@pytest.mark.parametrize("change", [{"source": ""}, {"date": ""}, {"total_gib": None}, {"kind": "cpu"}])
def test_a_card_without_memory_source_or_date_is_refused(change):
    with pytest.raises(ValueError, match="needs its memory"):
        accelerator_from_entry({**CARD, **change})


def test_a_scheme_outside_all_bounds_is_refused():
    with pytest.raises(ValueError, match="bytes_per_param is"):
        scheme_from_entry("x", {"bytes_per_param": 0, "groups": [], "base_bytes_per_param": 2, "uncertainty": 0})


def test_a_variant_of_an_unknown_scheme_is_refused():
    base = load_fit_catalogue().models.find("Qwen/Qwen3-8B")
    with pytest.raises(ValueError, match="unknown scheme"):
        variant_of(base, {"id": "a/b", "scheme": "never"}, {})


def test_a_width_of_a_group_that_is_not_quantised_is_refused():
    catalogue = load_fit_catalogue()
    base, schemes = catalogue.models.find("Qwen/Qwen3-8B"), {"x": catalogue.models.find("Qwen/Qwen3-8B-AWQ").quant}
    entry = {"id": "a/b", "scheme": "x", "groups": ["mlp"], "source": "s"}
    assert dict(variant_of(base, {**entry, "widths": {"mlp": 1.0}}, schemes).quant.widths) == {"mlp": 1.0}
    with pytest.raises(ValueError, match="width of 'attention'"):
        variant_of(base, {**entry, "widths": {"attention": 1.0}}, schemes)


@pytest.mark.parametrize("change", [{"source": ""}, {"max_position": 0}])
def test_a_sibling_without_context_or_source_is_refused(change):
    base = load_fit_catalogue().models.find("Qwen/Qwen3-8B")
    with pytest.raises(ValueError, match="sibling 'a/b'"):
        sibling_of(base, {"id": "a/b", "max_position": 4096, "source": "s", **change})


@pytest.mark.parametrize(
    "read",
    [
        lambda base: accelerator_from_entry({**CARD, "multiprocesors": 80}),
        lambda base: model_from_entry({"name": "a/b", "tyed": True}, {}),
        lambda base: scheme_from_entry("x", {"bytes_per_param": 1, "heavyer": 0.1}),
        lambda base: variant_of(base, {"id": "a/b", "scheme": "fp8", "narrow_cache": "modelopt"}, {}),
        lambda base: sibling_of(base, {"id": "a/b", "max_position": 4096, "source": "s", "tyed": True}),
        lambda base: version_from_entry(
            {"version": "0.1.0", "default_utilisation": 0.9, "is_datd": True}, frozenset(), {}
        ),
    ],
    ids=["card", "model", "scheme", "variant", "sibling", "version"],
)
def test_a_misspelled_key_is_refused(read):
    """It would leave the default in force, and nobody would see it."""
    with pytest.raises(ValueError, match="unknown key '"):
        read(load_fit_catalogue().models.find("Qwen/Qwen3-8B"))


def test_the_versions_of_a_flag_are_found_beside_its_ends():
    document = {
        "read": ["0.6.3", "0.9.2", "0.10.0", "0.33.0"],
        "names": {"new": ["0.9.2", None], "old": [None, "0.9.2"]},
    }
    assert flag_versions(document) == {
        "new": ((0, 6, 3), (0, 9, 2), None, None),
        "old": (None, None, (0, 9, 2), (0, 10, 0)),
    }
    for ends in (["0.6.3", None], [None, "0.33.0"], ["0.10.0", "0.9.2"], ["0.9.1", None]):
        with pytest.raises(ValueError, match=r"flag|list"):
            flag_versions(document | {"names": {"flag": ends}})
