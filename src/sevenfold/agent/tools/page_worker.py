"""Turns HTML into markdown, in a separate process that the kernel ends when its time is up.

400 KB of comment signs keep the parser busy for two minutes. The script is run by its path, so that modules
of a project are never imported. It reads HTML from standard input and writes markdown.
"""

from __future__ import annotations

import resource
import signal
import sys

_MAX_MEMORY_BYTES = 2 * 1024 * 1024 * 1024
_LEFT_OUT = ("script", "style", "noscript", "template", "svg", "iframe", "nav", "footer")


def _main() -> None:
    # Not at the top: whoever looks through our modules does not need them.
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    page = BeautifulSoup(sys.stdin.buffer.read().decode("utf-8", "replace"), "html.parser")
    for node in page(_LEFT_OUT):
        node.decompose()
    try:
        text = MarkdownConverter(heading_style="ATX", strip=["img"]).convert_soup(page)
    except RecursionError:
        text = page.get_text("\n")  # nested too deep to be worth its form
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


if __name__ == "__main__":
    _main()
