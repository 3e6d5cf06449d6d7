"""The tables and the chart of docs/performance.md, from the stored figures of the benchmarks.

python -m docs.generate.performance: write only these; `python -m docs.generate` writes all pages.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figures import OURS, PEERS, RESULTS, Row, ahead_of_ours, goals, read, rows_of
from docs.generate.svg import Drawing

if TYPE_CHECKING:
    from typing import Any

DOCS = Path(__file__).parent.parent
PAGE = DOCS / "performance.md"
CHART = DOCS / "performance.svg"
BEGIN, END = "<!-- generated from bench/results.json -->", "<!-- end of the generated part -->"
COLD = "connect, publish, first ack"
SEPARATE = ("import", COLD)  # rows with a table of their own
# The rows of the chart, and the clients with their colors.
CHART_ROWS = [
    "publish 16 B",
    "iterator 16 B",
    "consume + ack, 128 B",
    "consume + ack, header read",
    "consume + ack, 16 KiB",
    "fetch(100) + ack, 128 B",
    "fetch(500) + ack, 128 B",
    "push + ack, 128 B",
    "window 1000, 128 B",
    "KV watch, 10,000 keys",
    "KV get 128 B",
    "request 16 B",
    "JetStream publish 128 B",
    "10,000 subscriptions",
]
BARS = [
    ("natsproto asyncio", "blue"),
    ("natsproto trio", "violet"),
    ("natsproto blocking", "green"),
    ("nats-core", "amber"),
    ("nats.js", "red"),
]


def render() -> dict[Path, str]:
    """Return the page and the chart; only the part between the marks of the page is generated."""
    results = read(RESULTS)
    page = PAGE.read_text(encoding="utf-8")
    before, found, rest = page.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise ValueError(f"{PAGE.name} has no marks for the generated part")
    text = f"{before}{BEGIN}\n\n{tables(results)}\n{END}{after}"
    return {PAGE: text, CHART: chart(results)}


RATIOS = """How many times less CPU time per message each client takes than nats-py on asyncio in
the same round: the median of the rounds and, in parentheses, the ratio of the minima. Higher is
better."""
COSTS = "Microseconds of CPU per message, the median and, in parentheses, the minimum:"
RATES = """Messages per second relative to nats-py, the median. On a busy machine, only CPU time is
reliable:"""
STARTS = """Cold start, in milliseconds of CPU, the median and the minimum. An import is measured
without `site`; the programs are measured as a whole, with the start of the interpreter, until the
first message is acknowledged:"""
GOALS = """Targets, as CPU time relative to nats-py ("x") unless stated otherwise. The median counts
(for imports the minimum); the other figure is in parentheses:"""
SHORT = """This was a short run, with {:.0%} of the messages: the figures are provisional, and
those of nats.js include more of its compiler's work than in a full run. """
FIRST = "On every runtime natsproto takes less CPU time than any other Python client, in every row."
NOT_FIRST = "Rows in which another Python client takes less CPU time than natsproto on a runtime:"


def tables(results: dict[str, Any]) -> str:
    rows = rows_of(results)
    parts = [
        conditions(results),
        "![CPU time per message relative to nats-py](performance.svg)",
        *(RATIOS, ratios(rows)),
        *(COSTS, costs(rows)),
        *(RATES, rates(rows)),
        *(STARTS, cold(rows)),
        *(GOALS, targets(rows)),
        *first(rows),
    ]
    return "\n\n".join(wrap(part) for part in parts if part) + "\n"


def wrap(text: str) -> str:
    """Break a paragraph at 125 columns; tables and images stay as they are."""
    if text.startswith(("|", "!", "-")):
        return text
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + 1 + len(word) > 125:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def conditions(results: dict[str, Any]) -> str:
    rounds = {len(row.values(row.base)) for row in rows_of(results).values()}
    loads = [load for row in results["rows"] for load in row["load"]]
    dates = {row["date"] for row in results["rows"]}
    least = min(row["share"] for row in results["rows"])
    when, load = f"Measured {span(dates)} on {results['machine']}", f"a load of {span(loads)}"
    return (
        f"{when}, with {load} and {span(rounds)} rounds per row. "
        f"{SHORT.format(least) if least < 1 else ''}{results.get('note', '')} "
        f"Versions: {', '.join(results['versions'])}; natsproto at commit {results['commit']}. "
        "nats-core stands for the family of nats-core, nats-jetstream and nats-key-value."
    )


def span(values: Any) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"


def table(head: list[str], body: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *body]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines).replace(
        "| --- | " + "---: | " * (len(head) - 2) + "---: |", "|---|" + "---:|" * (len(head) - 1)
    )


def short(client: str) -> str:
    return client.removeprefix("natsproto ")


def main_rows(rows: dict[str, Row]) -> list[Row]:
    return [row for name, row in rows.items() if name not in SEPARATE]


def ratios(rows: dict[str, Row]) -> str:
    columns = [*OURS, *PEERS[1:]]
    body = []
    for row in main_rows(rows):
        cells = [row.ratio(client) for client in columns]
        texts = [f"{each.median:.2f} ({each.minima:.2f})" if each else "-" for each in cells]
        body.append([row.name, *texts])
    return table(["CPU x", *map(short, columns)], body)


def costs(rows: dict[str, Row]) -> str:
    columns = [*OURS, *PEERS]
    body = []
    for row in main_rows(rows):
        texts = []
        for client in columns:
            cost = row.cpu(client)
            faults = row.faults(client)
            note = f", {faults} lost or duplicated" if faults else ""
            texts.append(f"{cost[0]:.3g} ({cost[1]:.3g}{note})" if cost else "-")
        body.append([row.name, *map(plain, texts)])
    return table(["CPU us", *map(short, columns)], body)


def plain(text: str) -> str:
    """Return numbers of more than three digits without an exponent."""
    return re.sub(r"[\d.]+e\+\d+", lambda found: f"{float(found[0]):.0f}", text)


def rates(rows: dict[str, Row]) -> str:
    columns = [*OURS, *PEERS[1:]]
    body = []
    for row in main_rows(rows):
        cells = [row.rate(client) for client in columns]
        body.append([row.name, *[f"{each:.2f}" if each else "-" for each in cells]])
    return table(["rate x", *map(short, columns)], body)


def cold(rows: dict[str, Row]) -> str:
    body = []
    for name in SEPARATE:
        for client in rows[name].clients if name in rows else []:
            cost, ratio = rows[name].cpu(client), rows[name].ratio(client)
            label = f"`{client}`" if name == "import" else f"{name}: {client}"
            if cost and ratio:
                cells = [f"{each / 1000:.1f}" for each in cost]
                body.append([label, *cells, f"{1 / ratio.median:.2f}"])
    return table(["", "ms", "least", "of nats-py's"], body) if body else ""


def targets(rows: dict[str, Row]) -> str:
    body = [
        [goal.row, short(goal.client) if goal.row != "import" else f"`{goal.client}`"]
        + [goal.target, goal.measured, "met" if goal.met else "**missed**"]
        for goal in goals(rows)
    ]
    return table(["", "client", "target", "measured", ""], body)


def first(rows: dict[str, Row]) -> list[str]:
    """Return the list of rows in which natsproto is not the first among Python clients."""
    behind: dict[str, list[str]] = {}
    for name, ours, peer in ahead_of_ours(rows):
        behind.setdefault(name, []).append(f"{short(ours)} ({peer})")
    if not behind:
        return [FIRST]
    return [NOT_FIRST, "\n".join(f"- {name}: {', '.join(who)}" for name, who in behind.items())]


def chart(results: dict[str, Any]) -> str:
    """Draw a bar for each client in each row, and a line where nats-py is."""
    rows = rows_of(results)
    drawing = Drawing()
    left, top, bar, gap, width = 190.0, 64.0, 11.0, 12.0, 520.0
    shown = [rows[name] for name in CHART_ROWS if name in rows]
    found = [[(client, color, row.ratio(client)) for client, color in BARS] for row in shown]
    most = max([ratio.median for each in found for *_, ratio in each if ratio], default=1.0)
    scale = width / most
    height = top + sum(len([1 for *_, r in each if r]) * bar + gap for each in found) + 20
    drawing.text(
        16, 24, "CPU time per message: how many times less than nats-py", "ink bold", "start"
    )
    x = 16.0
    for client, color in BARS:
        drawing.polygon([(x, 37), (x + 10, 37), (x + 10, 47), (x, 47)], color)
        drawing.text(x + 15, 46, client, "dim", "start")
        x += 30 + 6.4 * len(client)
    words: list[str] = []
    labels: list[tuple[float, float, str]] = []
    y = top
    for row, bars in zip(shown, found):
        present = [each for each in bars if each[2]]
        middle = y + len(present) * bar / 2 + 4
        drawing.text(left - 8, middle, row.name, "ink", "end")
        said: list[str] = []
        for client, color, ratio in present:
            assert ratio
            end = left + ratio.median * scale
            drawing.polygon([(left, y), (end, y), (end, y + bar - 2), (left, y + bar - 2)], color)
            labels.append((end + 4, y + bar - 2, f"{ratio.median:.1f}"))
            said.append(f"{client} {ratio.median:.1f}")
            y += bar
        words.append(f"{row.name}: {', '.join(said)}")
        y += gap
    drawing.line(left + scale, top - 6, left + scale, y - gap + 4, "ink", "3 3")
    drawing.text(left + scale, y + 4, "nats-py", "dim small")
    for x, below, text in labels:  # across the line
        drawing.text(x, below, text, "dim small", "start", halo=True)
    return drawing.render(
        left + width + 50, height, "CPU time relative to nats-py", "; ".join(words) + "."
    )


def main() -> None:
    for path, text in render().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
