"""More worlds, and larger ones: the part of the simulation that a second core runs meanwhile."""

from __future__ import annotations

import contextlib

import pytest

from tests.sim.known_bugs import worked_around
from tests.sim.world import World

FIRST = 10_000
CHUNK = 150
LARGE = 3.0
"""Three times as many jobs and as much time as a small world has."""


def _first_broken(seeds: range, scale: float) -> str | None:
    for seed in seeds:
        world = World(seed, scale=scale)
        with contextlib.suppress(Exception):
            world.run()
        if world.violation is not None:
            again = f"python -m tests.sim --seed {seed} --scale {scale}"
            return f"seed {seed}: {': '.join(world.violation)}\nagain: {again}\n{world.text(25)}"
    return None


@pytest.mark.slow
@pytest.mark.rule("O1", "O2", "O4", "O6", "B2", "B3", "T6", "T8", "T9", "T11", "S9", "E7", "H3", "X2", "X3")
@pytest.mark.parametrize("part", range(4))
def test_further_worlds_break_no_invariant(part: int) -> None:
    with worked_around():
        broken = _first_broken(range(FIRST + part * CHUNK, FIRST + (part + 1) * CHUNK), 1.0)
    assert broken is None, broken


@pytest.mark.slow
@pytest.mark.rule("T8", "T11", "O2", "B3")
@pytest.mark.parametrize("part", range(3))
def test_larger_worlds_break_no_invariant(part: int) -> None:
    with worked_around():
        broken = _first_broken(range(FIRST + part * 40, FIRST + (part + 1) * 40), LARGE)
    assert broken is None, broken
