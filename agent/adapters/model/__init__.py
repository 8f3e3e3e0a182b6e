"""The model that may be asked for a diagnosis: any OpenAI-compatible endpoint."""
