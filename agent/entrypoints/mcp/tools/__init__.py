"""The tools of the MCP server, each a method with typed arguments and a typed result."""
