"""A checkpoint: its configuration, tensor shapes and quantisation."""
