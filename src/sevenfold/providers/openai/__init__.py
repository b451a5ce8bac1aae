"""OpenAI's APIs: Chat Completions and Responses, as a provider."""
