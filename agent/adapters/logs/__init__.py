"""Where an instance's own log is read: Cloud Logging, or a file."""
