"""A document of sections, and what it is written as; the report of an incident."""
