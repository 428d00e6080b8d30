# SPDX-License-Identifier: Apache-2.0
"""Collects what was measured; writes it as JSON and as tables."""
import dataclasses
import json


class Results:
    """The values by case and metric, and why others are missing."""

    def __init__(self, units):
        self._units = units
        self._values = {}  # (case, metric): (value, unit)
        self.errors = {}

    def add(self, case, metric, value, unit=None):
        self._values[case, metric] = (value, unit or self._units[metric])

    def get(self, case, metric):
        value, _ = self._values.get((case, metric), (None, None))
        return value

    def fail(self, case, error):
        self.errors[case] = str(error)

    def rows(self):
        return [
            {"case": case, "metric": metric, "value": round(value, 6), "unit": unit}
            for (case, metric), (value, unit) in sorted(self._values.items())
        ]

    def write(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n ".join(json.dumps(row) for row in self.rows())
        path.write_text(f"[{lines}]\n")


@dataclasses.dataclass
class Target:
    case: str
    metric: str
    measured: float | None
    limit: float | None
    why: str | None = None

    # Counts of a run that is cut off at both ends are off by a few in all of its requests.
    TOLERANCE = 0.0005

    @property
    def ok(self):
        return (self.measured is not None and self.limit is not None
                and self.measured <= self.limit + self.TOLERANCE)

    def cells(self):
        def number(value):
            return "not measured" if value is None else f"{value:.4g}"

        verdict = "ok" if self.ok else "–" if self.measured is None else "missed"
        because = f" ({self.why})" if self.why else ""
        return [self.case, self.metric, "≤ " + number(self.limit) + because,
                number(self.measured), verdict]

    def __str__(self):
        case, metric, limit, measured, _ = self.cells()
        return f"{case}: {metric}: {measured}, target {limit}"


def cells(results, case, columns):
    def cell(value, form):
        text = "" if value is None else form.format(value)
        return text if any(digit in text for digit in "123456789") else text.lstrip("-")

    return [cell(results.get(case, metric), form) for metric, _, form in columns]


def case_rows(results, cases, columns):
    for case in cases:
        if case in results.errors and not any(cells(results, case, columns)):
            yield [case, "not measured"] + [""] * (len(columns) - 1)
        else:
            yield [case, *cells(results, case, columns)]


def _align(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        first, *others = (cell.ljust(width) if i == 0 else cell.rjust(width)
                          for i, (cell, width) in enumerate(zip(row, widths)))
        yield "  ".join([first, *others])


def text_table(results, cases, columns):
    heads = ["case"] + [head for _, head, _ in columns]
    return "\n".join(_align([heads, *case_rows(results, cases, columns)]))


def targets_table(targets):
    rows = [["case", "metric", "target", "measured", ""]]
    rows += [target.cells() for target in targets]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
                     for row in rows)


def markdown_table(heads, rows, left=1):
    """The first `left` columns read as words, the others as numbers."""
    lines = ["| " + " | ".join(heads) + " |",
             "|" + "".join(" --- |" if i < left else " ---: |" for i in range(len(heads)))]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
