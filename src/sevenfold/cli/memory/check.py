"""`sevenfold memory check`: memories that name what is gone, and conditions that never match."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from sevenfold.cli.memory.context import MemoryContext
from sevenfold.cli.screen import format_count
from sevenfold.core.errors import InputError
from sevenfold.core.memories import GATE_KEY
from sevenfold.layers.memory.trust.claims import MemoryClaim, find_claims
from sevenfold.layers.memory.trust.verifier import BrokenClaim, ProjectVerifiers
from sevenfold.store.memory.changes import StoredMemory
from sevenfold.store.memory.sidecars import BrokenMark

if TYPE_CHECKING:
    from sevenfold.core.settings.sections import WebSettings

MAX_PARALLEL_FETCHES = 8
"""Pages that are fetched side by side."""


@dataclass(frozen=True, slots=True)
class CheckedMemory:
    stored: StoredMemory
    claims: int
    broken: tuple[BrokenClaim, ...]
    refused: tuple[str, ...]
    """Conditions that cannot be read."""

    @property
    def is_whole(self) -> bool:
        return not self.broken and not self.refused


def check_memory_claims(options: Namespace, context: MemoryContext) -> int:
    names = cast("list[str]", options.memories)
    stored = [context.find(name) for name in names] if names else list(context.memory.scan(None))
    claims = [find_claims(one.memory.body) for one in stored]
    broken = ProjectVerifiers(context.project, context.project.root).check_each(stored, claims)
    checked = [
        CheckedMemory(one, len(found), lost, _list_refused(one))
        for one, found, lost in zip(stored, claims, broken, strict=True)
    ]
    if options.online:
        # Not at the top: who does not ask for addresses waits for neither.
        import asyncio

        from sevenfold.core.settings.sections import WebSettings

        checked = asyncio.run(_with_urls(checked, context.workspace.settings.of(WebSettings)))
    _mark(context, checked)
    if context.is_json:
        context.screen.show_json([_described(one) for one in checked])
    else:
        _show(context, checked)
    return 0 if all(one.is_whole for one in checked) else 1


def _list_refused(stored: StoredMemory) -> tuple[str, ...]:
    if not stored.memory.applies_to and not stored.memory.field(GATE_KEY):
        return ()
    # As in a list: not where no memory has a condition.
    from sevenfold.layers.memory.rule_policy import RuleSettings
    from sevenfold.layers.memory.rule_reader import parse_memory_rule

    return tuple(
        f"{one.text!r} is no condition: {one.reason}"
        for one in parse_memory_rule(stored, RuleSettings()).refused
    )


async def _with_urls(checked: Sequence[CheckedMemory], settings: WebSettings) -> list[CheckedMemory]:
    # Not at the top: only a check of addresses needs the tools of the agent.
    import asyncio

    from sevenfold.agent.tools.web_fetch import fetch_page

    room = asyncio.Semaphore(MAX_PARALLEL_FETCHES)

    async def look(claim: MemoryClaim) -> BrokenClaim | None:
        async with room:
            try:
                page = await fetch_page(claim.text, settings)
            except InputError as error:
                return BrokenClaim(claim, str(error))
        return BrokenClaim(claim, f"answers {page.status}") if page.status in (404, 410) else None

    async def complete(one: CheckedMemory) -> CheckedMemory:
        urls = [claim for claim in find_claims(one.stored.memory.body) if claim.kind == "url"]
        found = await asyncio.gather(*map(look, urls))
        lost = tuple(broken for broken in found if broken is not None)
        return CheckedMemory(one.stored, one.claims, (*one.broken, *lost), one.refused)

    return list(await asyncio.gather(*map(complete, checked)))


def _mark(context: MemoryContext, checked: Sequence[CheckedMemory]) -> None:
    """What is broken is known from now on to whoever recalls or tidies memories."""
    now = context.now()
    context.marks.put(
        {
            one.stored.memory.key: BrokenMark(one.stored.sha256, tuple(map(str, one.broken)), now)
            if one.broken
            else None
            for one in checked
        }
    )


def _show(context: MemoryContext, checked: Sequence[CheckedMemory]) -> None:
    for one in checked:
        if one.is_whole:
            continue
        context.screen.show_line(one.stored.memory.key, "strong")
        for broken in one.broken:
            context.screen.show_line(f"  {broken.claim.kind} {broken}", "warning")
        for reason in one.refused:
            context.screen.show_line(f"  {reason}", "warning")
    claims = sum(one.claims for one in checked)
    wrong = sum(not one.is_whole for one in checked)
    looked = f"{format_count(claims, 'claim')} of {format_count(len(checked), 'file')} looked at"
    context.screen.show_line(
        f"{looked}; {wrong:,} to be looked at by you" if wrong else f"{looked}; all hold"
    )


def _described(checked: CheckedMemory) -> dict[str, object]:
    return {
        "key": checked.stored.memory.key,
        "claims": checked.claims,
        "broken": [
            {"kind": one.claim.kind, "text": one.claim.text, "reason": one.reason} for one in checked.broken
        ],
        "refused": list(checked.refused),
    }
