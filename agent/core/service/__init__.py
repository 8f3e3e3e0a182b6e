"""A watched service: its serving configuration, container arguments and metrics."""
