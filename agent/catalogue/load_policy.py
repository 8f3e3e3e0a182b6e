"""The default policy: which flags and values can be set at all, read from its file once."""

from functools import cache
from importlib import resources

from agent.core.decision.policy import Policy, parse_policy


@cache
def load_default_policy() -> Policy:
    """Return the policy that holds where nobody wrote one: nothing is automatic, and nobody approves from afar.

    Raises:
        SettingsRejected: A mistake in the bundled file; a bug.
    """
    return parse_policy((resources.files("agent.catalogue") / "policy.default.toml").read_text("utf-8"))
