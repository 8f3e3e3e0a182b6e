"""How a plan comes to be: candidates, proofs, and runbooks for what only a person may do."""
