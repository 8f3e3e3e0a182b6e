"""What the model's tokens cost, by the prices that the operator sets."""

from pydantic import Field

from agent.core.diagnosis.model_request import Spend
from agent.core.value import Value

TOKENS = 1_000_000


class ModelPrice(Value):
    """Prices of the configured endpoints, USD per million tokens; an endpoint of one's own may cost 0."""

    usd_per_million_in: float = Field(ge=0)
    usd_per_million_out: float = Field(ge=0)

    def usd(self, *, tokens_in: int, tokens_out: int) -> float:
        """Return what so many tokens cost, USD."""
        return (tokens_in * self.usd_per_million_in + tokens_out * self.usd_per_million_out) / TOKENS

    def of(self, spent: Spend) -> float:
        """Return what was spent, USD; records that do not tell answers apart count as questions."""
        return self.usd(tokens_in=spent.tokens - spent.tokens_out, tokens_out=spent.tokens_out)
