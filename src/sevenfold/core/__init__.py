"""Values and pure functions over them. Every other package imports from here, and nothing here from them.

In reading order:

- `json`: JSON as immutable values, and reading the fields that a model filled in.
- `fields`: dataclasses as JSON objects and back, by the types of their fields.
- `messages`: messages and their blocks, and their wire form.
- `canonical`: the bytes that are hashed.
- `requests`: what is sent to a model, what comes back, and what a model and a provider can do; the view:
  the messages as they are sent, and announced cuts.
- `spills`: what was decided of a tool result.
- `normalize`, `normalize_blocks`: repairs of a history that the API would refuse.
- `usage`, `models`, `prices`: what a request used, the known models, finding them by name, and cost.
- `price_list`: prices of all other models, from a generated list.
- `tokens`: how many tokens a context holds, and the size of the window.
- `cache`: the provider's prompt cache.
- `tool_kinds`: what a tool does, and what it works with.
- `memories`: a memory file, its origin, its uses and the conditions under which it applies.
- `secrets`: finding secrets in a text.
- `text`: functions over text.
- `settings`: declaring, reading and merging settings.
- `events`, `errors`: everything that is reported or raised.
- `extras`: how an optional part of the package is installed.
- `clock`, `system`: time as an argument; system errors, sockets and threads.

Nothing here reads or writes files, except data that comes with the package, or calls a provider. Time comes
from a `Clock` that the caller passes in.
"""

__version__ = "0.1.0"
"""Of Sevenfold; the build reads it from here."""
