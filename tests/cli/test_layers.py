"""`sevenfold layers`."""

from __future__ import annotations

import pytest

from sevenfold.cli import main


def test_the_seven_layers_fit_eighty_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layers"]) == 0
    said = capsys.readouterr().out
    assert "memory: extraction and recall" in said
    assert [line for line in said.splitlines() if len(line) > 80] == []
