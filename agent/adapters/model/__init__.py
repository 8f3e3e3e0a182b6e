"""Who adds a word: any OpenAI-compatible endpoint."""
