"""Everything that the page can show of one project, opened together and closed together."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.session.opening import Workspace
from sevenfold.ui.access import GuardedApp, PageAccess
from sevenfold.ui.app import make_page_app
from sevenfold.ui.background import DreamPages, SpendPages
from sevenfold.ui.calls import PageRoute
from sevenfold.ui.conversation import ConversationPages
from sevenfold.ui.live import LiveWatcher
from sevenfold.ui.memories import MemoryPages
from sevenfold.ui.recall import RecallPages
from sevenfold.ui.sessions import SessionCatalog, SessionPages
from sevenfold.ui.team import TeamPages


@dataclass(frozen=True, slots=True)
class UiPages:
    workspace: Workspace
    sessions: SessionCatalog
    watcher: LiveWatcher
    routes: tuple[PageRoute, ...]

    def make_app(self, access: PageAccess) -> GuardedApp:
        project = str(self.workspace.project_root)
        return make_page_app(self.routes, access, project=project, stream=self.watcher.stream)


@contextmanager
def open_pages(workspace: Workspace, clock: Clock | None = None) -> Generator[UiPages]:
    """The pages of a workspace. It is not closed with them."""
    now = clock or SystemClock()
    catalog = SessionCatalog(
        workspace.home,
        workspace.catalog,
        now,
        environ=workspace.environ,
        user_home=workspace.user_home,
    )
    watcher, recall = LiveWatcher(workspace, catalog, now), RecallPages(workspace, now)
    pages = (
        SessionPages(catalog, workspace.home),
        ConversationPages(catalog, workspace),
        MemoryPages(workspace, now),
        recall,
        DreamPages(workspace),
        SpendPages(workspace, now),
        TeamPages(workspace),
        watcher,
    )
    catalog.refresh()
    try:
        yield UiPages(workspace, catalog, watcher, tuple(one for page in pages for one in page.routes()))
    finally:
        recall.close()
        catalog.join()
