"""Generators of pages and Terraform values, and the lab; not deployed."""
