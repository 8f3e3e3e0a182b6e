"""A load sweep: what is measured at which load, what was predicted, and what came out."""
