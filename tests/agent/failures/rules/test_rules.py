"""Every rule that the catalogue names exists, and every rule is used."""

from agent.catalogue.load_failures import FailureCatalogue, is_fix_action
from agent.failures.rules.rule_input import RuleInput
from agent.failures.rules.rules import RULES
from agent.failures.signature import Phase


def test_rules_and_entries_fit_together(catalogue: FailureCatalogue) -> None:
    assert {signature.decide for signature in catalogue.signatures if signature.decide} == set(RULES)


def test_every_rule_answers_a_bare_case_in_the_vocabulary() -> None:
    for phase in Phase:
        for rule in RULES.values():
            ruling = rule(RuleInput(line="", text="", fields={}, phase=phase))
            assert all(is_fix_action(fix) for fix in ruling.fixes)
