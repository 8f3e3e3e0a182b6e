"""The HTTP door: decisions, the operators' API and alerts, in one small web application."""
