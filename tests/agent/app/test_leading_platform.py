"""What a replica may still ask of a platform when it leads no more."""

from agent.app.leading_platform import READS
from agent.ports.platform import Platform

EFFECTS = {"apply", "restore", "shift"}


def test_every_method_of_the_port_is_known_for_a_read_or_an_effect():
    """A new method is an effect until somebody says otherwise."""
    methods = {name for name in vars(Platform) if not name.startswith("_")}
    assert methods >= READS
    assert methods - READS >= EFFECTS
