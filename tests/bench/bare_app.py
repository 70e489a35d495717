#!/usr/bin/env python3
"""The least that could show 10,000 rows: one Textual app, one line-API `ScrollView`. What a start is measured against.

Requirements: textual.
"""

from rich.segment import Segment
from textual.app import App
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

ROWS = 10_000


class Rows(ScrollView):
    def on_mount(self):
        self.virtual_size = Size(80, ROWS)

    def render_line(self, y):
        n = y + self.scroll_offset.y
        return Strip([Segment(f"row-{n:06d}  acme  waiting  running  0:48  30:00  4/12  0/3  0/3", self.rich_style)])


class Bare(App):
    def compose(self):
        yield Rows()


if __name__ == "__main__":
    Bare().run()
