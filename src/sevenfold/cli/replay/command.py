"""`sevenfold replay`: what recorded sessions of other agents cost, and where the money went."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import cast

from sevenfold.cli.replay.policy import TranscriptSource, explain_no_transcripts, find_transcript_sources
from sevenfold.cli.replay.view import show_replay_header, show_replay_report
from sevenfold.cli.screen import Screen
from sevenfold.core.clock import SystemClock
from sevenfold.core.errors import InputError, SevenfoldError
from sevenfold.core.events import Event, describe_event
from sevenfold.core.models import Model
from sevenfold.core.price_list import read_price_list
from sevenfold.core.prices import Catalog, ModelSettings, build_catalog
from sevenfold.core.settings import Settings
from sevenfold.core.settings.sections import PlaceSettings
from sevenfold.replay.account import ReplayTerms
from sevenfold.replay.page import build_page, resolve_page_path, write_page
from sevenfold.replay.parallel import ReadProgress, read_accounts
from sevenfold.replay.report import ReplayReport, build_replay_report, describe_replay_report
from sevenfold.replay.stored_reports import StoredReports
from sevenfold.store.project.settings_files import find_checkout, find_user_home, read_settings
from sevenfold.store.session_index.derived import DerivedValues


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """What the user asked for."""

    paths: tuple[Path, ...]
    terms: ReplayTerms
    limit: int | None
    jobs: int | None
    repriced: str | None
    home: Path
    """Sevenfold's own."""
    html: Path | None = None


def run_replay(options: Namespace, screen: Screen) -> int:
    wanted = _wanted(options)
    if options.policy:
        return _run_policy(options, wanted, screen)
    report = read_replay_report(wanted, screen)
    if options.json:
        screen.show_json(describe_replay_report(report))
    elif report.files and wanted.html:
        show_replay_header(report, screen)
    elif report.files:
        show_replay_report(report, screen, _remarks(report, wanted.terms))
    if report.files and wanted.html:
        # Beside JSON it would be in a program's way.
        tell = screen.note if options.json else screen.show_line
        tell(write_report_page(report, wanted.html, wanted.terms))
    if not report.files:
        _fail_empty(report, wanted.terms, screen)
    return 0 if report.files else 1


def read_replay_report(wanted: ReplayOptions, screen: Screen) -> ReplayReport:
    """Read what is named; without a name, the user's own sessions; without those, the sample."""
    places = find_transcript_sources(wanted.paths, wanted.terms.since, wanted.limit, wanted.home)
    report = _read(next(places), wanted, screen)
    for place in places:
        if report.sessions:
            break
        report = _read(place, wanted, screen)
    return report


def write_report_page(report: ReplayReport, path: Path, terms: ReplayTerms) -> str:
    """Write the page; what to tell of it."""
    remark = " ".join(_remarks(report, terms))
    page = build_page(report, made_at=SystemClock().now(), remarks=[remark] if remark else [])
    target = write_page(path, page)
    return f"the page is in {target} ({len(page) / 1e6:.1f} MB): open it in a browser"


def _run_policy(options: Namespace, wanted: ReplayOptions, screen: Screen) -> int:
    # Loaded only for this: it brings the whole request path.
    from sevenfold.cli.replay.policy import parse_policy_question, show_policy_costs

    question = parse_policy_question(options, wanted.terms)
    places = find_transcript_sources(wanted.paths, wanted.terms.since, wanted.limit, wanted.home)
    return show_policy_costs(question, places, screen, jobs=wanted.jobs, is_json=bool(options.json))


def _read(place: TranscriptSource, wanted: ReplayOptions, screen: Screen) -> ReplayReport:
    def tell(progress: ReadProgress) -> None:
        share = progress.done_bytes / progress.total_bytes if progress.total_bytes else 1.0
        screen.show_progress(f"{progress.phase} {progress.total_bytes / 1e6:,.0f} MB", share)

    with _open_stored(wanted.home, wanted.terms, screen) as stored:
        try:
            outcome = read_accounts(
                place.found, wanted.terms, jobs=wanted.jobs, stored=stored, on_progress=tell
            )
        finally:
            screen.clear_progress()
    unreadable = (*place.unreadable, *outcome.unreadable)
    return build_replay_report(
        outcome.files, origin=place.origin, unreadable=unreadable, repriced=wanted.repriced
    )


@contextmanager
def _open_stored(home: Path, terms: ReplayTerms, screen: Screen) -> Generator[StoredReports | None]:
    """What earlier runs computed. Without it everything is read again, which takes longer."""

    def warn(event: Event) -> None:
        screen.note(f"warning: {describe_event(event)}")

    def warn_of(reason: str) -> None:
        screen.note(f"warning: nothing is kept for the next run: {reason}")

    try:
        values = DerivedValues.open(home, emit=warn)
    except SevenfoldError as error:
        warn_of(str(error))
        yield None
        return
    with closing(values):
        yield StoredReports(values, terms, warn_of)


def _remarks(report: ReplayReport, terms: ReplayTerms) -> Iterator[str]:
    if terms.reprice is None:
        return
    own = {terms.catalog.find(bill.model).tokenizer for bill in report.bills}
    if own - {terms.reprice.tokenizer}:
        yield "token counts are those of the models that were used: the newer tokenizer counts"
        yield "about 30% more for the same text, so a change of model changes them too"


def _fail_empty(report: ReplayReport, terms: ReplayTerms, screen: Screen) -> None:
    for item in report.unreadable:
        screen.fail(f"{item.path}: {item.reason}")
    if not report.unreadable:
        screen.fail(explain_no_transcripts(terms.since))


def _wanted(options: Namespace) -> ReplayOptions:
    limit, jobs = cast("int | None", options.limit), cast("int | None", options.jobs)
    for name, value in (("--limit", limit), ("--jobs", jobs)):
        if value is not None and value < 1:
            raise InputError(f"{name} {value}: expected a number from 1 on")
    _check_policy(options)
    catalog = _read_catalog()
    reprice = cast("str | None", options.reprice)
    model = _priced_model(catalog, reprice) if reprice else None
    terms = ReplayTerms(catalog, model, read_since_date(cast("str | None", options.since)))
    paths = tuple(Path(path).expanduser() for path in cast("Sequence[str]", options.paths))
    html = cast("str | None", options.html)
    # Asked before anything is read: that may take a minute.
    target = None if html is None else resolve_page_path(Path(html))
    return ReplayOptions(
        paths=paths,
        terms=terms,
        limit=limit,
        jobs=jobs,
        repriced=model.name if model else None,
        home=read_own_home(),
        html=target,
    )


def _check_policy(options: Namespace) -> None:
    """Options that would be ignored are refused."""
    if options.policy and options.html is not None:
        raise InputError("--html with --policy: the page shows what was spent; leave one of them out")
    for name, value in (("--ttl", options.ttl), ("--read-price", options.read_price)):
        if value is not None and not options.policy:
            raise InputError(f"{name} {value}: it counts only under a policy; add --policy sevenfold")


def read_own_home() -> Path:
    """Where Sevenfold keeps its files."""
    return _read_settings(PlaceSettings).of(PlaceSettings).home_folder(find_user_home(os.environ))


def _read_catalog() -> Catalog:
    """The table with the user's own models and prices over it."""
    return build_catalog(_read_settings(ModelSettings))


def _read_settings(section: type) -> Settings:
    return read_settings([section], root=find_checkout(Path()), environ=os.environ, is_part=True)


def _priced_model(catalog: Catalog, name: str) -> Model:
    model = catalog.find(name)
    if not model.tariffs:
        own = [item.name for item in catalog.models if item.tariffs]
        near = get_close_matches(name, [*own, *read_price_list().tariffs], n=3)
        raise InputError(
            f'--reprice {name!r}: no price is known for it. Give one under [models."{name}"] in '
            f"~/.sevenfold/settings.toml, or name one of {', '.join(dict.fromkeys([*near, *own]))}, or "
            "another of those in core/price_list.json, such as gpt-5.6"
        )
    return model


def read_since_date(text: str | None) -> datetime | None:
    """A day, or a time, in the user's own zone unless it names another."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InputError(f"--since {text!r}: expected a date such as 2026-11-01") from error
