"""The frontier as a picture: for each price, what a policy costs against what it leaves in view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 330, 250
COLUMNS = 3
LEFT, RIGHT, TOP, BOTTOM = 48, 14, 30, 36
COLOURS = {"keep": "#666", "fixed": "#b5651d", "ski": "#8a2be2", "thrift": "#0a7d4b", "balanced": "#1456c4"}


@dataclass(frozen=True, slots=True)
class Spot:
    name: str
    in_view: float
    cost: float


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    spots: Sequence[Spot]
    lines: Mapping[str, Sequence[Spot]]
    """The same policy with more or fewer of the last results kept."""


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, step: float) -> list[float]:
        first = round(self.low / step + 0.4999)
        return [number * step for number in range(first, int(self.high / step + 1e-9) + 1)]


def draw(panels: Sequence[Panel]) -> str:
    """One SVG with a panel for each price, all on the same scales: down and right is better."""
    every = [spot for panel in panels for spot in [*panel.spots, *_on_lines(panel)]]
    left = min(spot.in_view for spot in every) - 0.01
    top = max(spot.cost for spot in every) + 0.01
    bottom = min(spot.cost for spot in every) - 0.01
    rows = -(-len(panels) // COLUMNS)
    body = [
        _panel(
            panel, number, _Scale(left, 1.0, LEFT, WIDTH - RIGHT), _Scale(bottom, top, HEIGHT - BOTTOM, TOP)
        )
        for number, panel in enumerate(panels)
    ]
    size = (
        f'viewBox="0 0 {WIDTH * COLUMNS} {HEIGHT * rows}" width="{WIDTH * COLUMNS}" height="{HEIGHT * rows}"'
    )
    style = "text{font:11px sans-serif;fill:#333}.t{font-weight:bold}.s{font-size:10px;fill:#777}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
        "<title>Cost over the optimum against the share of later uses in view</title>"
        f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>{"".join(body)}</svg>\n'
    )


def _panel(panel: Panel, number: int, across: _Scale, up: _Scale) -> str:
    x, y = (number % COLUMNS) * WIDTH, (number // COLUMNS) * HEIGHT
    parts = [
        f'<g transform="translate({x},{y})"><text class="t" x="{LEFT}" y="18">{escape(panel.title)}</text>'
    ]
    parts += [_grid(across, up)]
    for policy, spots in panel.lines.items():
        points = " ".join(f"{across.place(spot.in_view):.1f},{up.place(spot.cost):.1f}" for spot in spots)
        colour = COLOURS[policy]
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-opacity=".45"/>')
        parts += [_dot(spot, across, up, colour, 1.8) for spot in spots]
    for spot in panel.spots:
        parts.append(_dot(spot, across, up, COLOURS[spot.name], 4))
        near = across.place(spot.in_view)
        side = f'x="{near - 7:.1f}" text-anchor="end"' if near > WIDTH / 2 else f'x="{near + 7:.1f}"'
        parts.append(f'<text {side} y="{up.place(spot.cost) + 4:.1f}">{spot.name}</text>')
    return "".join([*parts, "</g>"])


def _grid(across: _Scale, up: _Scale) -> str:
    parts: list[str] = []
    for value in across.ticks(0.05):
        x = across.place(value)
        parts.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#eee"/>')
        parts.append(
            f'<text class="s" x="{x:.1f}" y="{HEIGHT - BOTTOM + 13}" text-anchor="middle">{value:.2f}</text>'
        )
    for value in up.ticks(0.05):
        y = up.place(value)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#eee"/>')
        parts.append(f'<text class="s" x="{LEFT - 5}" y="{y + 3:.1f}" text-anchor="end">{value:.2f}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    foot = f'<text class="s" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">in view</text>'
    return "".join([*parts, foot])


def _dot(spot: Spot, across: _Scale, up: _Scale, colour: str, radius: float) -> str:
    x, y = across.place(spot.in_view), up.place(spot.cost)
    told = f"{spot.name}: {spot.cost:.3f} at {spot.in_view:.3f} in view"
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"><title>{told}</title></circle>'


def _on_lines(panel: Panel) -> list[Spot]:
    return [spot for spots in panel.lines.values() for spot in spots]
