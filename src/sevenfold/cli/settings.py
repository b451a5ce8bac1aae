"""`sevenfold settings`: every value, where it came from, and what was refused.

The reason of each setting is the docstring under its field.
"""

from __future__ import annotations

import ast
import inspect
import os
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path, PurePath
from textwrap import dedent
from typing import cast

from sevenfold.agent.opening.workspace import read_repository_files
from sevenfold.cli.screen import Screen, TableCell
from sevenfold.cli.workspace import open_workspace
from sevenfold.core.errors import InputError
from sevenfold.core.events import SettingRefused
from sevenfold.core.json import JsonObject
from sevenfold.core.settings import ResolvedSetting, Settings, SettingSource, SettingsSection
from sevenfold.core.settings.kinds import SettingValue
from sevenfold.core.settings.merge import did_you_mean
from sevenfold.session.opening import Workspace
from sevenfold.session.settings import SETTINGS_SECTIONS
from sevenfold.store.project.settings_files import Proposal

# Reasons are read from the source, so that each is written once.


def read_setting_reasons(section: type[SettingsSection]) -> dict[str, str]:
    """The reason of each field, by name; a field without one is missing."""
    tree = ast.parse(dedent(inspect.getsource(section))).body[0]
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    reasons: dict[str, str] = {}
    for statement, following in pairwise(body):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str() as reason)),
            ):
                reasons[name] = " ".join(reason.split())
            case _:
                pass
    return reasons


__all__ = ["SETTINGS_SECTIONS"]


def run_settings(options: Namespace, screen: Screen) -> int:
    project, keys = cast("Path", options.project), cast("list[str]", options.keys)
    if options.trust or options.refuse:
        answer = _Answer(open_workspace(project), cast("bool", options.trust))
        return answer.show(
            answer.give_to(keys) if keys else answer.give_to_settings(), screen, as_json=options.json
        )
    workspace = open_workspace(project, trusts_local=True)
    settings, _ = workspace.settings, workspace.catalog  # a model that cannot be used is said here, not later
    chosen = select_settings(settings, keys)
    if options.json:
        screen.show_json(describe_settings(chosen, settings.refused))
        return 0
    if keys:
        show_setting_details(chosen, screen)
    else:
        screen.show_table(_row(item) for item in chosen)
    show_refused_settings(settings.refused, screen)
    return 0


@dataclass(frozen=True, slots=True)
class _Answer:
    """A person's answer about files that came with the repository, as they are now."""

    workspace: Workspace
    is_agreed: bool

    def give_to_settings(self) -> dict[str, list[str]]:
        """To every settings file that needs one; what each wants, by path."""
        return {str(item.file.path): self._give(item) for item in self._proposals()}

    def give_to(self, names: list[str]) -> dict[str, list[str]]:
        """To the files that a person named."""
        root = self.workspace.root
        proposals = {item.file.path.relative_to(root).as_posix(): item for item in self._proposals()}
        requests = {file.request.name: file.request for file in read_repository_files(self.workspace).files}
        answered: dict[str, list[str]] = {}
        for name in map(self._below, names):
            if name not in proposals and name not in requests:
                known = ", ".join(sorted({*proposals, *requests})) or "no file of this repository does"
                raise InputError(f"{name!r} needs no answer; these do: {known}")
            if name in proposals:
                answered[str(proposals[name].file.path)] = self._give(proposals[name])
            if name in requests:
                request = requests[name]
                self.workspace.keep_consent(request.name, request.content, is_agreed=self.is_agreed)
                answered[str(request.path)] = list(request.wants)
        return answered

    def show(self, answered: dict[str, list[str]], screen: Screen, *, as_json: bool) -> int:
        word = "trusted" if self.is_agreed else "refused"
        if as_json:
            screen.show_json({word: answered})
            return 0
        for path, wants in answered.items():
            screen.show_line(f"{word} until it changes: {path}: {', '.join(wants)}")
        if not answered:
            screen.show_line(f"no settings file of {self.workspace.root} needs an answer", "faint")
        return 0

    def _proposals(self) -> list[Proposal]:
        return [proposal for proposal in self.workspace.proposals if proposal.waiting]

    def _give(self, proposal: Proposal) -> list[str]:
        key, content = proposal.file.consent_key, proposal.content
        self.workspace.keep_consent(key, content, is_agreed=self.is_agreed)
        return [item.key for item in proposal.waiting]

    def _below(self, name: str) -> str:
        """A file as the listing names it: from the top of the project."""
        root = self.workspace.root
        path = Path(os.path.normpath(root / name))
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else name


def select_settings(settings: Settings, keys: list[str]) -> list[ResolvedSetting]:
    """The settings that these keys name: a section, a setting, or part of a table; all without a key."""
    if not keys:
        return list(settings.resolved)
    for key in keys:
        _check_key(key, settings)
    return [item for item in settings.resolved if any(_is_under(item.key, key) for key in keys)]


def describe_settings(
    chosen: list[ResolvedSetting], refused: tuple[SettingRefused, ...]
) -> dict[str, object]:
    """The same as plain data."""
    return {
        "settings": [
            {
                "key": item.key,
                "value": _plain(item.value),
                "default": _plain(item.spec.default),
                "source": item.origin.source.value,
                "where": item.origin.where or None,
                "kind": item.spec.kind.name,
                "allowed": item.spec.kind.allowed,
                "environment": item.spec.variable,
            }
            for item in chosen
        ],
        "refused": [{"source": item.source, "key": item.key, "reason": item.reason} for item in refused],
    }


def show_setting_details(chosen: list[ResolvedSetting], screen: Screen) -> None:
    if not chosen:
        screen.show_line("nothing is set there", "faint")
    for item in chosen:
        screen.show_line(f"{item.key} = {format_value(item.value)}", "strong")
        screen.show_table(
            [TableCell(f"  {label}", "faint"), TableCell(text)]
            for label, text in _details(item).items()
            if text
        )


def show_refused_settings(refused: tuple[SettingRefused, ...], screen: Screen) -> None:
    if refused:
        screen.show_line("refused:", "warning")
    for item in refused:
        screen.show_line(f"  {item.source}: {item.key}: {item.reason}")


def format_value(value: SettingValue | None) -> str:
    """A value as one would write it in a settings file."""
    match value:
        case None:
            return "(unset)"
        case bool():
            return str(value).lower()
        case int():
            return f"{value:_}"
        case Decimal():
            return f"{value:f}"
        case str() | PurePath():
            return f'"{value}"'
        case tuple():
            return "[" + ", ".join(f'"{item}"' for item in value) + "]"
        case JsonObject():
            # Variables and headers for somebody else's program: often a key.
            return "{" + ", ".join(f"{name} = …" for name in value) + "}"
        case _:
            return "{" + ", ".join(f"{name} = {size:_}" for name, size in value.items()) + "}"


def _row(item: ResolvedSetting) -> list[TableCell]:
    is_default = item.origin.source is SettingSource.DEFAULT
    return [
        TableCell(item.key),
        TableCell(format_value(item.value), "plain" if is_default else "strong"),
        TableCell(str(item.origin), "faint" if is_default else "plain"),
    ]


def _details(item: ResolvedSetting) -> dict[str, str]:
    spec = item.spec
    others = [f"also {spec.alias}" if spec.alias else "", f"off by {spec.off_by}=1" if spec.off_by else ""]
    return {
        "from": str(item.origin),
        "default": format_value(spec.default),
        "allowed": spec.kind.allowed,
        "environment": ", ".join(filter(None, [spec.variable, *others])),
        "reason": read_setting_reasons(spec.section).get(spec.name, ""),
    }


def _plain(value: SettingValue | None) -> object:
    match value:
        case Decimal():
            return float(value)
        case PurePath():
            return str(value)
        case JsonObject():
            return dict.fromkeys(value, "…")
        case Mapping():
            return dict(value)
        case _:
            return value


def _is_under(key: str, wanted: str) -> bool:
    return key == wanted or key.startswith(f"{wanted}.")


def _check_key(key: str, settings: Settings) -> None:
    known = dict.fromkeys(_known_keys(settings))
    if not any(_is_under(item, key) for item in known):
        hint = did_you_mean(key, {item: item for item in known}) or "`sevenfold settings` lists them"
        raise InputError(f"no setting is called {key!r}; {hint}")


def _known_keys(settings: Settings) -> Iterator[str]:
    for section in SETTINGS_SECTIONS:
        yield section.SECTION
    for item in settings.resolved:
        yield item.spec.key
        yield item.key
