"""The reason of each setting, from the text under its field: said once, in the source, shown from there."""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from textwrap import dedent

from sevenfold.core.settings import SettingsSection


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
