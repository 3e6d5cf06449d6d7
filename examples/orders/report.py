"""The report of a run: one HTML file with charts, which loads nothing else."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from examples.orders.charts import Column, lines, stacked_columns
from examples.orders.generator import REGIONS
from examples.orders.show import money

if TYPE_CHECKING:
    from pathlib import Path

    from examples.orders.generator import Totals, Windows
    from examples.orders.phases import Outcome

COLUMNS = 60  # the most in the chart of revenue
LIGHT = ["#2f6fd0", "#d9662b", "#1d9a86", "#a4479b", "#b08a1e"]
DARK = ["#6fa5f2", "#f0955f", "#4cc7b3", "#d583cc", "#dcb955"]
STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5a6676; --paper: #fff; --card: #f5f7fa;
  --line: #dde3ea; --mark: #b3261e; --good: #146c43; COLORS }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ecf2; --soft: #a3aebd; --paper: #14181f;
  --card: #1c222b; --line: #333c49; --mark: #ff8a80; --good: #6fd3a0; NIGHT } }
body { margin: 0 auto; max-width: 820px; padding: 28px 20px 60px; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 34px 0 8px; }
p { color: var(--soft); margin: 0 0 14px; }
.verdict { font-weight: 600; color: var(--good); } .verdict.wrong { color: var(--mark); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(165px, 1fr)); gap: 10px;
  padding: 0; margin: 18px 0; list-style: none; }
.tiles li { background: var(--card); border-radius: 8px; padding: 10px 14px; }
.tiles b { display: block; font-size: 19px; font-variant-numeric: tabular-nums; }
.tiles span { color: var(--soft); font-size: 13px; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--soft); font-size: 11px; }
svg line.grid { stroke: var(--line); } svg line.mark { stroke: var(--mark); stroke-dasharray: 3 3; }
svg text.mark { fill: var(--mark); } svg polyline { fill: none; stroke-width: 2;
  stroke-linejoin: round; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; padding: 0; margin: 6px 0 0;
  list-style: none; font-size: 13px; } .legend span { display: inline-block; width: 11px;
  height: 11px; border-radius: 3px; margin-right: 6px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 14px; }
th, td { text-align: right; padding: 3px 16px 3px 0; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; } th { color: var(--soft); font-weight: 500; }
SERIES
"""


def style() -> str:
    """Return the CSS: series are numbered, f for fills, s for strokes, b for legends."""

    def variables(colors: list[str]) -> str:
        return " ".join(f"--c{number}: {color};" for number, color in enumerate(colors))

    series = "\n".join(
        f".f{number} {{ fill: var(--c{number}); }} .s{number} {{ stroke: var(--c{number}); }}"
        f" .b{number} {{ background: var(--c{number}); }}"
        for number in range(len(LIGHT))
    )
    made = STYLE.replace("COLORS", variables(LIGHT)).replace("NIGHT", variables(DARK))
    return made.replace("SERIES", series)


def revenue_chart(windows: Windows, totals: Totals) -> str:
    """Draw the revenue by time and region; neighboring minutes share a column if there are many."""
    minutes = sorted({minute for minute, _ in windows})
    together = -(-len(minutes) // COLUMNS) or 1
    columns: list[Column] = []
    for start in range(0, len(minutes), together):
        chosen = minutes[start : start + together]
        values = [
            sum(windows.get((minute, region), 0) for minute in chosen) / 100 for region in REGIONS
        ]
        columns.append(Column(chosen[0].strftime("%H:%M"), values))
    note = f"A column is {together} minutes." if together > 1 else "A column is one minute."
    if len(minutes) % together:
        note = note[:-1] + f", the last one {len(minutes) % together}."
    if sum(windows.values()) < totals.cents:
        note += " The last minutes are missing: their windows are open until later orders arrive."
    title = "Revenue by window and region"
    return f"<p>{note}</p>" + stacked_columns(title, list(REGIONS), columns, "")


def revenue_table(windows: Windows) -> str:
    by_region: Counter[str] = Counter()
    for (_, region), cents in windows.items():
        by_region[region] += cents
    rows = "".join(
        f"<tr><td>{escape(region)}</td><td>{money(cents)}</td></tr>"
        for region, cents in by_region.most_common()
    )
    rows += f"<tr><td>all</td><td>{money(sum(by_region.values()))}</td></tr>"
    return f"<table><tr><th>region</th><th>revenue</th></tr>{rows}</table>"


def section(outcome: Outcome) -> str:
    """Return the charts of a phase: throughput and lag over time."""
    marks = [(event.at, event.text) for event in outcome.events]
    rates = {track.name: outcome.rates.get(track.name, track.rates()) for track in outcome.tracks}
    # A part without a lag has an empty line there, so that the others keep their colors.
    lags = {track.name: track.lags() if track.reads else [] for track in outcome.tracks}
    name = escape(outcome.title)
    return (
        f"<h2>{name}: throughput over time</h2><p>Messages per second.</p>"
        + lines(f"{outcome.title}: throughput over time", rates, marks)
        + f"<h2>{name}: lag over time</h2><p>Messages that were published and not read yet.</p>"
        + lines(f"{outcome.title}: lag over time", lags, marks)
    )


def write_report(path: Path, outcomes: list[Outcome], totals: Totals, version: str) -> None:
    """Write the report; its charts are those of all phases, the last one first."""
    wrong = [text for outcome in outcomes for text in outcome.wrong]
    verdict = "<br>".join(map(escape, wrong)) or "Every sum is exact, to the cent."
    windows = outcomes[-1].windows
    figures = [("orders", f"{totals.count:,}"), ("revenue", money(totals.cents))]
    figures.append(("windows", f"{len(windows):,}"))
    figures += [figure for outcome in reversed(outcomes) for figure in outcome.figures]
    tiles = "".join(
        f"<li><b>{value}</b><span>{escape(name)}</span></li>" for name, value in figures
    )
    body = f"""<h1>Orders</h1>
<p>{totals.count:,} orders through one JetStream stream of nats-server {version}.</p>
<p class="verdict{" wrong" if wrong else ""}">{verdict}</p>
<ul class="tiles">{tiles}</ul>
<h2>Revenue by window and region</h2>
{revenue_chart(windows, totals)}
<h2>Revenue by region</h2>
<div class="scroll">{revenue_table(windows)}</div>
{"".join(section(outcome) for outcome in reversed(outcomes))}"""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Orders</title>\n<style>{style()}</style></head>\n<body>{body}</body></html>\n",
        encoding="utf-8",
    )
