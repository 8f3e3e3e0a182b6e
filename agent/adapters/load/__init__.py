"""Load generators that run as subprocesses, and the folder that keeps what they measured."""
