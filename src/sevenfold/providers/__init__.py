"""The models: a request goes in and a reply comes out, as values; each module knows one provider's way."""
