"""A person's decision to put a change back while it is still being verified: signed, for one plan and one effect."""

from agent.core.decision.decision import PersonAct, ReceiptSigner
from agent.core.value import Value, canonical, digest


class RollBackDecision(Value):
    """One decision to put one change back; a change takes one.

    Attributes:
        effect: Key of the apply that it puts back, derived from incident and whole plan.
        by: Who, when, through which channel, and why.
        receipt: Hex HMAC-SHA256 over everything else, made with the key of the decisions' receipts.
    """

    incident: str
    plan: str
    plan_digest: str
    effect: str
    by: PersonAct
    receipt: str = ""

    @property
    def id(self) -> str:
        """Its own name, as an approval has one."""
        return digest(self.with_(receipt=""))

    def signed(self, signer: ReceiptSigner) -> "RollBackDecision":
        """Return it with its receipt.

        Raises:
            DependencyFailed: The holder of the key did not answer.
        """
        return self.with_(receipt=signer.sign(self._body))

    def refusal(self, signer: ReceiptSigner, *, incident: str, plan_digest: str, effect: str) -> str:
        """Return why it does not cover this effect of this plan, or nothing.

        Args:
            signer: Holds the key of the receipts.
            incident: Id of the incident.
            plan_digest: Of its present plan.
            effect: Key of the apply that is to be put back.

        Raises:
            DependencyFailed: The holder of the key did not answer; nothing may follow.
        """
        if not self.receipt or not signer.verify(self._body, self.receipt):
            return "the decision to roll it back is not signed by the deciding function"
        if (self.incident, self.plan_digest, self.effect) != (incident, plan_digest, effect):
            return "the decision to roll it back is about another change"
        return ""

    @property
    def _body(self) -> bytes:
        return canonical({"roll_back": self.with_(receipt="").model_dump(mode="json")})


def claim_name(effect: str) -> str:
    """Return the name under which the control database holds the one decision to put an effect back."""
    return f"roll-back-{effect}"
