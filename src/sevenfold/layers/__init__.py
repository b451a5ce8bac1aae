"""The seven layers, one folder each. In every folder the modules named `policy` or `…_policy` decide: they
take facts and settings and return a decision. The other modules collect the facts and carry the decision out;
the step of a request is in `layer`.

- `tool_results`: layer 1, large tool results on disk.
- `microcompact`: layer 2, old tool results cleared from the view.
- `session_notes`: layer 3, running notes of a session.
- `compaction`: layer 4, the history replaced by a summary.
- `memory`: layer 5, extraction, recall, rules, trust and search of memories.
- `dreams`: layer 6, memories consolidated between sessions.
- `forks`: layer 7, model runs on the same prefix, messages between agents, and single background jobs.
- `context`: what enters a view besides the conversation.
- `living_docs`: documents that a fork keeps up to date.
- `conversation`: `Conversation`, the history, view and token count that every step works on.
- `conversation_state`: the parts of a conversation, its records on their way to the transcript, and what a
  resumed session has to know beside the messages.
- `templates`: prompt texts, from the user's folder or from the `prompts/` of a layer.

A policy does no I/O, awaits nothing and reads no clock. Layers import only the layers below them; the list is
in `pyproject.toml`. The `LAYERS` table below is what `sevenfold layers` prints.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    number: int
    name: str
    cost: str
    trigger: str
    folder: str
    """Below `layers`."""


LAYERS = (
    Layer(
        number=1,
        name="tool-result storage",
        cost="a file write",
        trigger="a result over its limit",
        folder="tool_results",
    ),
    Layer(
        number=2,
        name="microcompaction",
        cost="nothing when the cache is cold",
        trigger="old results that no longer pay",
        folder="microcompact",
    ),
    Layer(
        number=3,
        name="session notes",
        cost="microseconds, or one fork",
        trigger="5,000 new tokens",
        folder="session_notes",
    ),
    Layer(
        number=4,
        name="compaction",
        cost="nothing with notes, else one summary",
        trigger="the window's threshold",
        folder="compaction",
    ),
    Layer(
        number=5,
        name="memory: extraction and recall",
        cost="one fork a turn; a lookup a prompt",
        trigger="the end of a turn",
        folder="memory",
    ),
    Layer(
        number=6, name="dreams", cost="one fork a night", trigger="a day and five sessions", folder="dreams"
    ),
    Layer(
        number=7,
        name="forks and messages",
        cost="the new tokens only",
        trigger="the layers above, or the agent",
        folder="forks",
    ),
)
