"""`sevenfold context`: what fills a session's window, and what its next compaction would do."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from typing import cast

from sevenfold.cli.inspect.context_facts import find_session_id, read_context_facts
from sevenfold.cli.inspect.context_view import describe_context, show_context
from sevenfold.cli.screen import Screen


def run_context(options: Namespace, screen: Screen) -> int:
    project = cast("Path", options.project)
    session = find_session_id(project, cast("str", options.session), os.environ)
    facts = read_context_facts(project, session, cast("str | None", options.model), os.environ)
    if options.json:
        screen.show_json(describe_context(facts))
    else:
        show_context(facts, screen)
    return 0
