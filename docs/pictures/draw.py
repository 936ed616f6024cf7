#!/usr/bin/env python3
"""Draws the pictures of the documentation: architecture.svg, and comparison.svg from comparison.csv.

Run it after changing either: python3 docs/pictures/draw.py
"""

import csv
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent
STYLE = """
  .card { fill: #ffffff; stroke: #d0d7de; }
  .box { fill: #f6f8fa; stroke: #8c959f; }
  .core { fill: #ddf4ff; stroke: #218bff; }
  .log { fill: #fff8c5; stroke: #bf8700; }
  .kinfolk { fill: #218bff; }
  .rival { fill: #afb8c1; }
  text { font: 14px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; }
  .small { font-size: 12px; fill: #59636e; }
  .arrow { stroke: #59636e; fill: none; }
  .head { fill: #59636e; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #3d444d; }
    .box { fill: #151b23; stroke: #656c76; }
    .core { fill: #0c2d6b; stroke: #388bfd; }
    .log { fill: #341a00; stroke: #bb8009; }
    .kinfolk { fill: #388bfd; }
    .rival { fill: #656c76; }
    text { fill: #f0f6fc; }
    .small { fill: #9198a1; }
    .arrow { stroke: #9198a1; }
    .head { fill: #9198a1; }
  }
"""


class Picture:
    def __init__(self, width, height, title):
        self.size = (width, height)
        self.title = title
        self.parts = []
        self.rect(0.5, 0.5, width - 1, height - 1, "card", radius=8)

    def rect(self, x, y, width, height, style, radius=5):
        self.parts.append(
            f'<rect class="{style}" x="{x}" y="{y}" width="{width:g}" height="{height:g}" rx="{radius}"/>'
        )

    def text(self, x, y, text, style="", anchor="start"):
        self.parts.append(f'<text class="{style}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>')

    def box(self, x, y, width, height, style, title, *lines):
        self.rect(x, y, width, height, style)
        middle = x + width / 2
        first = y + height / 2 + 5 - 9 * len(lines)
        self.text(middle, first, title, "title", "middle")
        for number, line in enumerate(lines, 1):
            self.text(middle, first + 18 * number, line, "small", "middle")

    def arrow(self, x1, y1, x2, y2):
        self.parts.append(f'<path class="arrow" d="M{x1} {y1} L{x2} {y2}" marker-end="url(#head)"/>')

    def save(self, name):
        width, height = self.size
        head = (
            '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path class="head" d="M0 0 L8 4 L0 8 z"/></marker>'
        )
        body = "\n".join(self.parts)
        (FOLDER / name).write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
            f'aria-label="{escape(self.title)}">\n<style>{STYLE}</style>\n<defs>{head}</defs>\n{body}\n</svg>\n'
        )


def architecture():
    picture = Picture(820, 470, "Protocols call the operations of core, which call ports; stores implement the ports")
    for x, name, line in [(30, "Command line", "kinfolk follow 1 2"), (295, "REST", "JSON, OpenAPI"), (560, "RESP", "any Redis client")]:
        picture.box(x, 24, 230, 56, "box", name, line)
        picture.arrow(x + 115, 80, x + 115, 116)
    picture.box(30, 120, 760, 60, "core", "Operations and rules (core)", "follow · check · list · overlap · suggest · post · feed · comment · changes")
    picture.arrow(300, 180, 300, 216)
    picture.arrow(700, 180, 700, 216)
    picture.text(312, 203, "ports", "small")
    picture.text(712, 203, "the same ports", "small")
    picture.rect(30, 220, 560, 226, "box")
    picture.text(46, 243, "Embedded store", "title")
    picture.text(574, 243, "one process, one folder", "small", "end")
    picture.box(46, 256, 150, 72, "box", "Writer", "plans, batches,", "assigns positions")
    picture.arrow(196, 292, 240, 292)
    picture.box(244, 256, 330, 72, "log", "Change log", "every write: synced before", "it is acknowledged or visible")
    picture.arrow(409, 328, 409, 356)
    for x, name, line in [
        (46, "Index", "checks, counts"),
        (180, "LSM trees", "edges, posts, comments"),
        (344, "Inboxes", "home feeds"),
        (460, "Suggestions", "ranked, stored"),
    ]:
        width = {46: 124, 180: 154, 344: 106, 460: 114}[x]
        picture.box(x, 360, width, 56, "box", name, line)
    picture.text(310, 436, "projections: derived from the log, compared with each other, repaired", "small", "middle")
    picture.rect(610, 220, 180, 226, "box")
    picture.text(700, 300, "Fleet", "title", "middle")
    for number, line in enumerate(["many processes", "shards on PostgreSQL", "changes on Kafka", "the graph, no content yet"]):
        picture.text(700, 322 + 20 * number, line, "small", "middle")
    picture.save("architecture.svg")


def comparison():
    with open(FOLDER / "comparison.csv", encoding="utf-8") as file:
        rows = list(csv.reader(line for line in file if not line.startswith("#")))
    left, bar_max, step = 24, 500, 76
    picture = Picture(820, 52 + step * len(rows), "Kinfolk compared with Redis and PostgreSQL")
    picture.rect(left, 20, 12, 12, "kinfolk", 2)
    picture.text(left + 18, 31, "Kinfolk", "small")
    picture.rect(left + 84, 20, 12, 12, "rival", 2)
    picture.text(left + 102, 31, "Redis 7 or PostgreSQL on the same two cores", "small")
    for number, (name, rival, unit, ours, theirs, ratio, better) in enumerate(rows):
        top = 56 + step * number
        ours, theirs = float(ours), float(theirs)
        picture.text(left, top, name, "title")
        picture.text(796, top, f"{float(ratio):.1f} × as fast as {rival} ({better} is better)", "small", "end")
        for offset, style, owner, value in [(10, "kinfolk", "Kinfolk", ours), (30, "rival", rival, theirs)]:
            width = bar_max * value / max(ours, theirs)
            picture.rect(left, top + offset, width, 15, style, 2)
            picture.text(left + width + 8, top + offset + 12, f"{value:,.0f} {unit}  {owner}", "small")
    picture.save("comparison.svg")


architecture()
comparison()
