"""`sevenfold replay`: what recorded sessions cost, where the money went, and what to do about it."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import count
from pathlib import Path
from typing import cast

from sevenfold.cli.replay.outputs import OutputChoice, publish_findings, resolve_svg_path
from sevenfold.cli.replay.sources import TranscriptSource, explain_no_transcripts, find_transcript_sources
from sevenfold.cli.screen import Screen
from sevenfold.core.errors import InputError, SevenfoldError
from sevenfold.core.events import Event, describe_event
from sevenfold.core.models import Model
from sevenfold.core.price_list import read_price_list
from sevenfold.core.prices import Catalog, ModelSettings, build_catalog
from sevenfold.core.settings import PlaceSettings, Settings
from sevenfold.core.system import map_os_errors
from sevenfold.replay.account import ReplayTerms
from sevenfold.replay.advice import ReplayFindings, plan_advice
from sevenfold.replay.anonymous import anonymize_report
from sevenfold.replay.groups import GroupKind
from sevenfold.replay.page import resolve_page_path
from sevenfold.replay.parallel import ReadProgress, read_accounts
from sevenfold.replay.report import ReplayReport, SavingRange, build_replay_report
from sevenfold.replay.stored_reports import StoredReports
from sevenfold.store.project.settings_files import find_checkout, find_user_home, read_settings
from sevenfold.store.session_index.database import DerivedValues

PAGE_NAME = "replay.html"
NEAR_NAMES = 3
"""Names of models that an error offers instead of an unknown one."""
WATCH_SECONDS = 2.0
"""Between two looks at the files."""


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
    output: OutputChoice
    is_anonymous: bool = False


def run_replay(options: Namespace, screen: Screen) -> int:
    wanted = read_options(options)
    if options.proxy:
        # Loaded only for this: it brings the proxy.
        from sevenfold.cli.replay.proxied import show_proxied

        return show_proxied(options, wanted.home, screen)
    if options.policy:
        return _run_policy(options, wanted, screen)
    if wanted.output.is_watching:
        return watch_replay(wanted, screen)
    return _report_once(wanted, screen)


def watch_replay(
    wanted: ReplayOptions, screen: Screen, wait: Callable[[float], object] = time.sleep, rounds: int = 0
) -> int:
    """Report, and again whenever a transcript grows or comes; until Ctrl-C, or for so many looks."""
    seen: object = None
    code = 1
    looks = count(1)
    while True:
        found = [place.found for place in find_sources(wanted)]
        if found != seen:
            code = _report_once(wanted, screen)
            screen.flush()
            # One window is enough: the page loads itself again.
            wanted, seen = replace(wanted, output=replace(wanted.output, opens=False)), found
        if next(looks) == rounds:
            return code
        wait(WATCH_SECONDS)


def _report_once(wanted: ReplayOptions, screen: Screen) -> int:
    found = read_findings(wanted, screen)
    report = found.report
    if report.files:
        publish_findings(found, wanted.output, wanted.terms, screen)
        return 0
    if wanted.output.is_json:
        publish_findings(found, OutputChoice(is_json=True), wanted.terms, screen)
    _fail_empty(report, wanted.terms, screen)
    return 1


def find_sources(wanted: ReplayOptions) -> Iterator[TranscriptSource]:
    return find_transcript_sources(wanted.paths, wanted.terms.since, wanted.limit, wanted.home)


def read_findings(wanted: ReplayOptions, screen: Screen) -> ReplayFindings:
    """Read what is named; without a name, the user's own sessions; without those, the sample."""
    with _open_stored(wanted.home, wanted.terms, screen) as stored:
        places = find_sources(wanted)
        report = _read(next(places), wanted, stored, screen)
        for place in places:
            if report.sessions:
                break
            report = _read(place, wanted, stored, screen)
        saving = _read_saving(report, wanted, stored, screen) if _needs_saving(wanted.output) else None
    if wanted.is_anonymous:
        report = anonymize_report(report)
    return ReplayFindings(report, saving, plan_advice(report, saving, wanted.terms.catalog))


def _needs_saving(output: OutputChoice) -> bool:
    """A list alone shows no advice."""
    return bool(output.html or output.svg or output.is_json) or not (output.by or output.is_csv)


def _read_saving(
    report: ReplayReport, wanted: ReplayOptions, stored: StoredReports | None, screen: Screen
) -> SavingRange | None:
    # Loaded only for this: it brings the policies.
    from sevenfold.replay.savings import read_saving

    done = 0

    def tell(more_bytes: int) -> None:
        nonlocal done
        done += more_bytes
        screen.show_progress(
            f"playing {done / 1e6:,.0f} MB", min(1.0, done / max(1, report.lines.length_bytes))
        )

    try:
        return read_saving(report, wanted.terms, stored=stored, jobs=wanted.jobs, on_bytes=tell)
    finally:
        screen.clear_progress()


def _run_policy(options: Namespace, wanted: ReplayOptions, screen: Screen) -> int:
    # Loaded only for this: it brings the whole request path.
    from sevenfold.cli.replay.policy import parse_policy_question, show_policy_costs

    question = parse_policy_question(options, wanted.terms)
    return show_policy_costs(
        question, find_sources(wanted), screen, jobs=wanted.jobs, is_json=bool(options.json)
    )


def _read(
    place: TranscriptSource, wanted: ReplayOptions, stored: StoredReports | None, screen: Screen
) -> ReplayReport:
    def tell(progress: ReadProgress) -> None:
        share = progress.done_bytes / progress.total_bytes if progress.total_bytes else 1.0
        screen.show_progress(f"{progress.phase} {progress.total_bytes / 1e6:,.0f} MB", share)

    try:
        outcome = read_accounts(place.found, wanted.terms, jobs=wanted.jobs, stored=stored, on_progress=tell)
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


def _fail_empty(report: ReplayReport, terms: ReplayTerms, screen: Screen) -> None:
    for item in report.unreadable:
        screen.fail(f"{item.path}: {item.reason}")
    if not report.unreadable:
        screen.fail(explain_no_transcripts(terms.since))


def read_options(options: Namespace) -> ReplayOptions:
    limit, jobs = cast("int | None", options.limit), cast("int | None", options.jobs)
    for name, value in (("--limit", limit), ("--jobs", jobs)):
        if value is not None and value < 1:
            raise InputError(f"{name} {value}: expected a number from 1 on")
    _check_policy(options)
    catalog = _read_catalog()
    reprice = cast("str | None", options.reprice)
    model = _priced_model(catalog, reprice) if reprice else None
    terms = ReplayTerms(catalog, model, read_since_date(cast("str | None", options.since)))
    paths = tuple(Path(os.path.expanduser(path)) for path in cast("Sequence[str]", options.paths))
    home = read_own_home()
    return ReplayOptions(
        paths=paths,
        terms=terms,
        limit=limit,
        jobs=jobs,
        repriced=model.name if model else None,
        home=home,
        output=_read_output(options, home),
        is_anonymous=bool(options.anonymous),
    )


def _read_output(options: Namespace, home: Path) -> OutputChoice:
    """Asked before anything is read: that may take a minute."""
    html, svg = cast("str | None", options.html), cast("str | None", options.svg)
    if html is None and options.open:
        html = ""
    if html == "":
        with map_os_errors(f"make the folder {str(home)!r}"):
            home.mkdir(0o700, parents=True, exist_ok=True)
        html = str(home / PAGE_NAME)
    return OutputChoice(
        is_json=bool(options.json),
        html=None if html is None else resolve_page_path(Path(html)),
        svg=None if svg is None else resolve_svg_path(svg),
        by=cast("GroupKind | None", options.by),
        is_csv=bool(options.csv),
        opens=bool(options.open),
        is_watching=bool(options.watch),
    )


def _check_policy(options: Namespace) -> None:
    """Options that would be ignored are refused."""
    if options.policy and options.html is not None:
        raise InputError("--html with --policy: the page shows what was spent; leave one of them out")
    for name in ("open", "svg", "by", "csv", "anonymous", "watch"):
        if options.policy and getattr(options, name):
            raise InputError(f"--{name} with --policy: it is for what was spent; leave one of them out")
    if options.csv and options.json:
        raise InputError("--csv with --json: leave one of them out")
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
        others = read_price_list().tariffs
        found = [*get_close_matches(name, [*own, *others], n=1), *get_close_matches(name, own)]
        near = list(dict.fromkeys([*found, *get_close_matches(name, [*own, *others], cutoff=0)]))[:NEAR_NAMES]
        raise InputError(
            f'--reprice {name!r}: no price is known for it. Give one under [models."{name}"] in '
            f"~/.sevenfold/settings.toml, or name a model that has one, such as {', '.join(near)}"
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
