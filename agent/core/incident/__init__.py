"""An incident: its phases, the next step that is due, and which signals belong to it."""
