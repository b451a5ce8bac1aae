"""`make docs`: the site of the docs, built offline, and checked for links that lead nowhere.

    python -m tests.site [FOLDER]

The pages are copied to `build/docs` first. A link out of `docs/`, to source or tests, becomes a link to the
repository there, and the decisions get a list. The site is in `build/site`, or in FOLDER.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
MAX_SECONDS = 60.0


def read_repository_url() -> str:
    found = re.search(
        r'^Source = "(https://\S+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE
    )
    assert found is not None
    return found[1]


def point_outside(text: str, page: Path, url: str) -> str:
    """The page with links to files beside `docs/` made links to the repository."""

    def rewrite(found: re.Match[str]) -> str:
        name, _, anchor = found[1].partition("#")
        target = (page.parent / name).resolve()
        if re.match(r"[a-z]+:", found[1]) or not name or target.is_relative_to(ROOT / "docs"):
            # A folder has no page of its own.
            return f"]({name.rstrip('/')}/index.md)" if name and target.is_dir() else found[0]
        kind = "tree" if target.is_dir() else "blob"
        where = target.relative_to(ROOT).as_posix()
        return f"]({url}/{kind}/main/{where}{'#' + anchor if anchor else ''})"

    return re.sub(r"\]\(([^)\s]+)\)", rewrite, text)


def list_decisions() -> str:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    titles = [page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for page in pages]
    lines = (f"- [{title}]({page.name})" for title, page in zip(titles, pages, strict=True))
    return "\n".join(("# Decisions", "", "Choices that somebody may want to reverse.", "", *lines, ""))


def stage(target: Path) -> None:
    """A copy of the pages, as the site shows them."""
    url = read_repository_url()
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "docs", target / "docs")
    for page in (target / "docs").rglob("*.md"):
        source = ROOT / "docs" / page.relative_to(target / "docs")
        page.write_text(point_outside(page.read_text(encoding="utf-8"), source, url), encoding="utf-8")
    (target / "docs" / "decisions" / "index.md").write_text(list_decisions(), encoding="utf-8")
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    settings = settings.replace("paths: [src]", f"paths: [{ROOT / 'src'}]").replace("build/site", "site")
    (target / "mkdocs.yml").write_text(settings, encoding="utf-8")


class _Page(HTMLParser):
    """Addresses that a page links to or loads, and places in it that can be linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.links, self.loads, self.places = list[str](), list[str](), set[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        is_loaded = tag in ("script", "img", "iframe") or given.get("rel") in (
            "stylesheet",
            "preload",
            "icon",
        )
        if is_loaded and (address := given.get("src") or given.get("href")):
            self.loads.append(address)


def find_problems(site: Path) -> Iterator[str]:
    """Links that lead nowhere, and what a page would load from elsewhere."""
    pages = {path: _Page() for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        page.feed(path.read_text(encoding="utf-8"))
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        yield from (f"{name} loads {address}" for address in page.loads if urlsplit(address).netloc)
        if name == "404.html":  # its addresses begin at the root of a server
            continue
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            target = target / "index.html" if target.is_dir() else target
            place = unquote(address.fragment)
            if not target.exists() or (target in pages and place and place not in pages[target].places):
                yield f"{name} links to {link}"


def build(target: Path) -> list[str]:
    """Build the site below `target`; what is wrong with it."""
    stage(target)
    zensical = [str(Path(sys.executable).parent / "zensical"), "build", "--config-file", "mkdocs.yml"]
    done = subprocess.run(zensical, cwd=target, capture_output=True, text=True, check=False)
    if done.returncode:
        return [done.stdout + done.stderr]
    return list(find_problems(target / "site"))


def main() -> int:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build"
    start = time.monotonic()
    problems = build(target)
    seconds = time.monotonic() - start
    pages = len(list((target / "site").rglob("*.html")))
    sys.stdout.write(f"{pages} pages in {seconds:.1f} s: {target / 'site' / 'index.html'}\n")
    sys.stdout.write("".join(f"error: {problem}\n" for problem in problems))
    return 1 if problems or seconds > MAX_SECONDS else 0


if __name__ == "__main__":
    sys.exit(main())
