"""Chance of the demo.

Job: draws and ids that repeat with a seed, so that screenshots repeat. Must not know: what is drawn for.
"""

from __future__ import annotations

import random


class DemoChance:
    """The port `Chance`. Draws and ids repeat with *seed*: nothing here guards a secret."""

    def __init__(self, seed: int) -> None:
        self._draws = random.Random(seed)
        self._ids = random.Random(f"ids {seed}")

    def draw(self) -> float:
        """From [0.0, 1.0)."""
        return self._draws.random()

    def token(self, size: int = 8) -> str:
        """*size* bytes as lower-case hex."""
        return self._ids.randbytes(size).hex()
