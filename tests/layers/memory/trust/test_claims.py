"""Claims of memories: what is certainly one, and what is only said in passing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.layers.memory.trust.claims import MAX_CLAIMS, MemoryClaim, find_claims


@pytest.mark.parametrize(
    ("body", "claims"),
    [
        ("Routes live in `src/api/routes.py`.", [("path", "src/api/routes.py")]),
        ("See src/api/routes.py for the list.", [("path", "src/api/routes.py")]),
        ("The bug was at `src/api/routes.py:42`.", [("path", "src/api/routes.py")]),
        ("Look at [the guide](docs/guide.md#L3).", [("path", "docs/guide.md")]),
        ("Settings are in `deploy/prod.toml` and `.github/workflows/`.",
         [("path", "deploy/prod.toml"), ("path", ".github/workflows")]),
        ("The parser is `grammar.py`.", [("path", "grammar.py")]),
        ("See src/todo/gone.py and https://docs.test/never.",
         [("url", "https://docs.test/never"), ("path", "src/todo/gone.py")]),
        ("Call `load_settings()` first.", [("symbol", "load_settings")]),
        ("`UserStore.find_all` is slow.", [("symbol", "UserStore.find_all")]),
        ("The limit is `MAX_OPEN_FILES`.", [("symbol", "MAX_OPEN_FILES")]),
        ("Run `make check` before a commit.", [("command", "make check")]),
        ("Use `npm run build:web`.", [("command", "npm run build:web")]),
        ("Start it with `./scripts/dev.sh`.", [("command", "./scripts/dev.sh")]),
        ("```sh\nmake lint\npytest -q tests\n```",
         [("command", "make lint"), ("command", "pytest -q tests")]),
        ("```console\n$ make lint\nall fine\n```", [("command", "make lint")]),
        ("Bugs are at https://linear.app/acme/team/API.", [("url", "https://linear.app/acme/team/API")]),
    ],
)  # fmt: skip
def test_a_memory_claims_what_it_names(body: str, claims: list[tuple[str, str]]) -> None:
    assert [(claim.kind, claim.text) for claim in find_claims(body)] == claims


@pytest.mark.parametrize(
    "body",
    [
        "The user likes short answers and/or tables.",
        "We deploy on Fridays at 3/4 of the hour, client/server.",
        "`true`, `main` and `id` are plain words.",
        "It writes `events.jsonl` and `notes.md` into `control/`.",
        "`src/old.py` was removed in March.",
        "Never call `legacy_login()`; it is obsolete.",
        "Use tabs instead of `indent_spaces`.",
        "Files are named `src/<name>/test_*.py`.",
        "Tests go to such places as `tests/foo/bar.py`.",
        "`utils/new_helper.py` will be added next week.",
        "Logs lie in `/var/log/app.log` and `~/.app/config.toml`.",
        "Nothing lies in `../other/main.py` for us.",
        "```python\nimport secret_module\nrun_it()\n```",
        "",
    ],
)
def test_a_memory_claims_nothing_that_it_only_speaks_of(body: str) -> None:
    assert find_claims(body) == ()


def test_a_claim_is_found_once_and_not_more_than_a_listing_needs() -> None:
    body = "\n".join(f"- `src/part_{number}.py` and `src/part_0.py`" for number in range(100))
    claims = find_claims(body)
    assert len(claims) == MAX_CLAIMS
    assert claims.count(MemoryClaim("path", "src/part_0.py")) == 1


@given(st.text(alphabet=st.sampled_from("ab/.`_-:()[]\n $<>*#'\"1M"), max_size=400))
def test_any_text_is_looked_through_without_failing(body: str) -> None:
    for claim in find_claims(body):
        assert claim.text
        assert not claim.text.startswith(("/", "~"))
