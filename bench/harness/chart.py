# SPDX-License-Identifier: Apache-2.0
"""Draws bars beside each other as SVG: one row a case, one panel a metric."""
import dataclasses
import html
import math

ROW, BAR = 26, 16
LABELS, PANEL, GAP, VALUE = 184, 250, 26, 62
TOP = 54
OURS, THEIRS = "#0b7285", "#adb5bd"


@dataclasses.dataclass
class Panel:
    title: str
    note: str
    metric: str
    form: str
    logarithmic: bool = False


def draw(results, cases, panels, ours):
    """`ours` are the cases in the colour of the house."""
    width = LABELS + len(panels) * (PANEL + GAP)
    height = TOP + ROW * len(cases) + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="system-ui, sans-serif" font-size="13" fill="#212529">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for row, case in enumerate(cases):
        weight = ' font-weight="600"' if case in ours else ""
        parts.append(_text(LABELS - 10, _middle(row), case, "end", weight))
    for number, panel in enumerate(panels):
        parts += _panel(results, cases, panel, LABELS + number * (PANEL + GAP), ours)
    return "\n".join([*parts, "</svg>\n"])


def _panel(results, cases, panel, left, ours):
    yield _text(left, 20, panel.title, "start", ' font-weight="600"')
    yield _text(left, 37, panel.note, "start", ' font-size="11" fill="#495057"')
    bottom = TOP + ROW * len(cases)
    yield f'<path d="M{left} {TOP - 6}V{bottom}" stroke="#868e96"/>'
    values = [results.get(case, panel.metric) for case in cases]
    known = [value for value in values if value is not None]
    for row, (case, value) in enumerate(zip(cases, values)):
        if value is None:
            continue
        share = _share(value, max(known), min(known), panel.logarithmic)
        length = max(1, round(share * (PANEL - VALUE)))
        colour = OURS if case in ours else THEIRS
        top = TOP + row * ROW + (ROW - BAR) // 2
        yield f'<rect x="{left}" y="{top}" width="{length}" height="{BAR}" fill="{colour}"/>'
        yield _text(left + length + 6, _middle(row), panel.form.format(value), "start")


def _share(value, most, least, logarithmic):
    if not logarithmic or least <= 0:
        return value / most if most else 0
    floor = 10 ** math.floor(math.log10(least))
    return math.log(value / floor) / math.log(most / floor) if most > floor else 1


def _middle(row):
    return TOP + row * ROW + ROW // 2 + 5


def _text(x, y, text, anchor, more=""):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{more}>{html.escape(text)}</text>'
