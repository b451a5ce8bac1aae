"""Who is asked beside the conversation which memories a prompt is about."""

from __future__ import annotations

from sevenfold.background.notes_texts import read_template
from sevenfold.core.catalog import find_cheap
from sevenfold.layers.recall_side import PROMPT
from sevenfold.providers.provider import Provider
from sevenfold.request.opening import Opened
from sevenfold.request.pipeline import RequestPath
from sevenfold.request.recalling import SideQuery


def choose_side(path: RequestPath, opened: Opened, provider: Provider | None) -> SideQuery | None:
    """The cheapest model of whoever serves the conversation's; None where nobody is to be asked."""
    around = path.around
    if provider is None or not around.settings.recall.side_query:
        return None
    cheap = find_cheap(path.model, around.catalog, around.clock.now().date())
    return SideQuery(provider, (cheap or path.model).name, read_template(opened.templates, PROMPT))
