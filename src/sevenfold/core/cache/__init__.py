"""The provider's prompt cache as a pure model: what a request would read from it and write to it.

- `prompt_blocks`: a request body as blocks, its cache breakpoints, and the assumptions about the cache.
- `rendered_prompt`: the blocks as hashed parts, and the first difference between two requests.
- `prompt_cache`: the entries of the cache, and how a request is billed.
"""
