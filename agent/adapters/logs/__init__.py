"""Where an instance's own log is read: log services of Google, AWS and Azure, Kubernetes, a journal, a file."""
