"""The checks of `sevenfold doctor` for files that a repository brings: hooks, servers and agents.

The user's own hooks are read here as well, since a hook that cannot be used protects nobody.
"""

from __future__ import annotations

from collections.abc import Iterator

from sevenfold.agent.opening.repository_files import RepositoryFile, read_repository_files
from sevenfold.cli.inspect.doctor_store import DoctorFinding
from sevenfold.cli.screen import shorten_text
from sevenfold.session.opening import Workspace

MAX_SHOWN_WANTS = 5
"""Of what one file would do: a hostile file has thousands of lines."""
MAX_WANT_CHARS = 120


def check_repository(workspace: Workspace) -> Iterator[DoctorFinding]:
    """What waits for an answer, what was answered, and what cannot be used."""
    found = read_repository_files(workspace)
    for problem in found.problems:
        said = f"{problem.path}: {problem.reason}"
        yield DoctorFinding("repository", "broken" if problem.is_users else "worry", said, "correct the file")
    for file in found.files:
        yield _check_file(file)


def _check_file(file: RepositoryFile) -> DoctorFinding:
    request, wants = file.request, _describe(file.request.wants)
    match file.consent:
        case "agreed":
            return DoctorFinding("repository", "fine", f"{request.path} counts, as you have agreed: {wants}")
        case "refused":
            said = f"{request.path} does not count, since you have refused it: {wants}"
            return DoctorFinding("repository", "fine", said)
        case _:
            said = f"{request.path} does not count, since nobody has agreed to it: {wants}"
            todo = (
                f"look at the file; `sevenfold settings --trust {request.name}` agrees to it, `--refuse "
                f"{request.name}` does not"
            )
            return DoctorFinding("repository", "worry", said, todo)


def _describe(wants: tuple[str, ...]) -> str:
    shown = [shorten_text(" ".join(want.split()), MAX_WANT_CHARS) for want in wants[:MAX_SHOWN_WANTS]]
    more = len(wants) - len(shown)
    return "; ".join([*shown, *([f"and {more} more"] if more else [])])
