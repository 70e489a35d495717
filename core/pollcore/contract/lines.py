"""On which line each key of a TOML text stands.

Job: (key path) -> line number, for error messages. Must not know: what any key means. The text was already accepted
by tomllib, so this scanner only has to follow it, not to judge it.
"""

from __future__ import annotations

from typing import Final

Path = tuple[str | int, ...]

_OPEN: Final = "[{"
_CLOSE: Final = "]}"


def key_lines(text: str) -> dict[Path, int]:
    """Map every key outside inline tables, and every table header, to its line (1-based)."""
    return _Scan(text).run()


class _Scan:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.found: dict[Path, int] = {}
        self.counts: dict[Path, int] = {}

    def run(self) -> dict[Path, int]:
        prefix: Path = ()
        while self._skip_blank():
            if self.text[self.at] == "[":
                prefix = self._header()
            else:
                line = self.line
                path = prefix + self._keys("=")
                for end in range(len(prefix) + 1, len(path) + 1):
                    self.found.setdefault(path[:end], line)
                self.at += 1
                self._skip_value()
        return self.found

    def _skip_blank(self) -> bool:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char == "\n":
                self.line += 1
                self.at += 1
            elif char.isspace():
                self.at += 1
            else:
                return True
        return False

    def _header(self) -> Path:
        double = self.text.startswith("[[", self.at)
        self.at += 2 if double else 1
        keys = self._keys("]")
        self.at += 2 if double else 1
        path: Path = ()
        for n, key in enumerate(keys):
            path += (key,)
            last = n == len(keys) - 1
            if double and last:
                self.counts[path] = self.counts.get(path, -1) + 1
            if path in self.counts:
                path += (self.counts[path],)
        self.found.setdefault(path, self.line)
        return path

    def _keys(self, stop: str) -> tuple[str, ...]:
        """Read a dotted key up to *stop*, which is left in place."""
        keys: list[str] = []
        bare = ""
        while self.text[self.at] != stop:
            char = self.text[self.at]
            if char in "\"'":
                bare = self._string()
            elif char == ".":
                keys.append(bare)
                bare = ""
                self.at += 1
            else:
                bare += "" if char.isspace() else char
                self.at += 1
        return (*keys, bare)

    def _string(self) -> str:
        """Skip one string of any of the four kinds; the text between its quotes."""
        quote = self.text[self.at]
        mark = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        start = self.at = self.at + len(mark)
        while not self.text.startswith(mark, self.at):
            if self.text[self.at] == "\\" and quote == '"':
                self.at += 1
            if self.text[self.at] == "\n":
                self.line += 1
            self.at += 1
        end = self.at
        self.at += len(mark)
        # up to two more quotes may belong to the text of a multi-line string
        while len(mark) == 3 and self.text.startswith(quote, self.at):
            self.at += 1
        return self.text[start:end]

    def _skip_value(self) -> None:
        depth = 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in "\"'":
                self._string()
                continue
            if char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
                continue
            if char == "\n":
                if depth == 0:
                    return
                self.line += 1
            depth += (char in _OPEN) - (char in _CLOSE)
            self.at += 1
