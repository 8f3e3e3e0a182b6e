"""The pages of the console beside incidents, plans and services."""
