"""Who is asked beside the conversation which memories a prompt is about."""

from __future__ import annotations

from sevenfold.core.catalog import find_cheapest_model
from sevenfold.layers.memory.recall.side_query import RECALL_PROMPT
from sevenfold.layers.templates import read_template
from sevenfold.providers.provider import Provider
from sevenfold.session.opening import SessionResources
from sevenfold.session.pipeline import ViewBuilder
from sevenfold.session.recall import SideQuery


def choose_side_query(
    path: ViewBuilder, opened: SessionResources, provider: Provider | None, *, is_agent: bool
) -> SideQuery | None:
    """The cheapest model of whoever serves the conversation's; None where nobody is to be asked."""
    around, asked_for = path.around, path.around.settings.recall.side_query
    if provider is None or asked_for == "off":
        return None
    cheap = find_cheapest_model(path.model, around.catalog, around.clock.now().date()) or path.model
    # A loop of somebody else's did not ask for calls to other models, nor one model to be asked twice.
    if asked_for == "auto" and (not is_agent or cheap == path.model):
        return None
    return SideQuery(provider, cheap.name, read_template(opened.templates, RECALL_PROMPT))
