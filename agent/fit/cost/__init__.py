"""What a model costs where, at a given load."""
