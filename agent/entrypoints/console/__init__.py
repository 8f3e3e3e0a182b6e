"""The console: server-rendered pages without scripts or outside resources."""
