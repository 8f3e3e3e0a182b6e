"""An SRE agent for self-hosted LLM servers: from log event to verified fix."""
