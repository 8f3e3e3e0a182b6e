"""Where requests come in: Pub/Sub, HTTP, the console, the command line, AI clients, monitors."""
