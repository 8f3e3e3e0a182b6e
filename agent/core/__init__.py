"""The domain model and its state machine: incidents, diagnoses, plans, decisions, changes; pure."""
