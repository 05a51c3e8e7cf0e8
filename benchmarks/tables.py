"""Small helpers of the report: means, tables, figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.store import Record


def mean(values: Sequence[float]) -> float:
    """The mean of what is known."""
    known = [v for v in values if v is not None]
    return float(np.mean(known)) if known else float("nan")


def se(values: Sequence[float]) -> float:
    """The standard error of the mean; 0 for a single value."""
    known = [v for v in values if v is not None]
    return float(np.std(known, ddof=1) / np.sqrt(len(known))) if len(known) > 1 else 0.0


def spread(values: Sequence[float], form: str) -> str:
    """The mean and its standard error; the mean alone for a single value."""
    known = [v for v in values if v is not None]
    text = format(mean(known), form)
    return f"{text} ± {format(se(known), form.lstrip('+'))}" if len(known) > 1 else text


def percent(value: float) -> str:
    """A share as a percentage."""
    return f"{100 * value:.1f} %"


def by(records: Iterable[Record], *names: str) -> dict[tuple[Any, ...], list[Record]]:
    """Records by some of their cell's values, in the order in which they come."""
    found: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        found.setdefault(tuple(record["cell"].get(name) for name in names), []).append(record)
    return found


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def reasons(records: Iterable[Record]) -> str:
    """Why methods are missing: one line for each reason."""
    found: dict[str, dict[str, None]] = {}
    for record in records:
        if "reason" in record["result"]:
            methods = found.setdefault(record["result"]["reason"], {})
            methods[record["cell"].get("method", "omnifair")] = None
    lines = [f"- {reason} ({', '.join(methods)})" for reason, methods in found.items()]
    return "\n".join(["Not shown:", "", *lines]) if lines else ""


FOLDER = Path(__file__).parent.parent / "docs" / "figures"


def figure(
    name: str, panels: Sequence[tuple[str, Callable[[Any], None]]], *, folder: Path | None = None
) -> str:
    """Draw panels side by side into an SVG; the Markdown that shows it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    # The same results give the same bytes.
    plt.rcParams.update({"svg.hashsalt": "omnifair", "svg.fonttype": "none", "font.size": 8})
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    height = 3.4 * lines + 0.9
    drawing, axes = plt.subplots(lines, columns, figsize=(4.2 * columns, height), squeeze=False)
    for axis in axes.ravel()[len(panels) :]:
        axis.axis("off")
    labels: dict[str, Any] = {}
    for axis, (title, draw) in zip(axes.ravel(), panels, strict=False):
        draw(axis)
        axis.set_title(title)
        axis.grid(alpha=0.25)
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            labels.setdefault(label, handle)
    wide = columns + 1 if columns > 1 else 2
    if labels:
        drawing.legend(labels.values(), labels, loc="lower center", ncols=wide, frameon=False)
    rows_of_legend = -(-len(labels) // wide)
    drawing.tight_layout(rect=(0, 0.2 * rows_of_legend / height, 1, 1))
    target = folder or FOLDER
    target.mkdir(parents=True, exist_ok=True)
    drawing.savefig(target / f"{name}.svg", metadata={"Date": None, "Creator": None})
    plt.close(drawing)
    return f"![{name}](figures/{name}.svg)"


def draw_curves(axis: Any, curves: dict[str, list[tuple[float, float]]]) -> None:
    """A line for each method; what is far below the highest would squeeze all others."""
    for method, curve in curves.items():
        x, y = zip(*sorted(curve), strict=True)
        axis.plot(x, y, label=method, **style(method))
    heights = [y for curve in curves.values() for _, y in curve]
    if heights:
        top = max(heights)
        low = max(min(heights), top - 0.06)
        axis.set_ylim(low - 0.05 * (top - low) - 1e-3, top + 0.05 * (top - low) + 1e-3)
    axis.set_xlim(left=0)


STYLES = ("o", "s", "^", "v", "D", "P", "X", "<", ">", "*", "h", "p")
OWN = {
    "omnifair": {"color": "black", "marker": "o", "linewidth": 1.8, "zorder": 5},
    "no constraint": {"color": "black", "marker": "x", "markersize": 7, "linestyle": "none"},
}


def style(name: str) -> dict[str, Any]:
    """One colour and marker for each method, the same in all figures."""
    import matplotlib

    from benchmarks.methods import METHODS

    names = [m for m in METHODS if m not in OWN]
    number = names.index(name) if name in names else len(names)
    common = {
        "color": matplotlib.colormaps["tab20"](2 * number % 20 + number // 10),
        "marker": STYLES[number % len(STYLES)],
        "markersize": 4,
        "linewidth": 0.9,
        "zorder": 2,
    }
    return {**common, **OWN.get(name, {})}
