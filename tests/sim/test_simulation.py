"""Whole worlds on virtual time: invariants after every commit, one seed one trace, each seeded bug is found."""

from __future__ import annotations

import collections
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sim.known_bugs import worked_around
from tests.sim.mutants import FOCUS, MUTANTS, SEEDS
from tests.sim.plan import FAULTS, planned
from tests.sim.world import World

FAST_SEEDS = 6
"""Those of the fast loop; the whole run goes on with the next ones."""
BROKEN_MUTANT = re.compile(r"\b(NameError|AttributeError|TypeError|ImportError|AssertionError)\b")
"""A seeded bug that merely raises proves nothing."""
LEAST_MUTANTS = 15
TOP = Path(__file__).parents[2]
REPLAYED = (3, 11, 18)
"""Seeds with deaths, stops, store faults and grants in them."""


def told(world: World) -> str:
    """What a broken seed says: what does not hold, how to run it again, the end of its trace."""
    assert world.violation is not None
    name, text = world.violation
    return f"seed {world.seed}: {name}: {text}\nagain: python -m tests.sim --seed {world.seed}\n{world.text(25)}"


def lived(seed: int) -> World:
    """The world of one seed, after its end; the test fails if anything in it did not hold."""
    world = World(seed)
    with contextlib.suppress(Exception):
        world.run()
    if world.violation is not None:
        pytest.fail(told(world), pytrace=False)
    return world


@pytest.mark.rule("O2", "O3", "O6", "B2", "B3", "T6", "E7", "G4", "X2", "X3")
def test_worlds_with_faults_break_no_invariant() -> None:
    with worked_around():
        checked = sum(lived(seed).watch.checked for seed in range(FAST_SEEDS))
    assert checked > 20 * FAST_SEEDS, "too few commits were checked to mean anything"


@pytest.mark.slow
@pytest.mark.rule("T1")
def test_one_seed_gives_one_trace_byte_for_byte() -> None:
    for seed in REPLAYED:
        first, second = World(seed, keep=True), World(seed, keep=True)
        first.run()
        second.run()
        assert first.text().encode() == second.text().encode()
        assert first.digest == second.digest != ""


@pytest.mark.slow
@pytest.mark.rule("T1")
def test_a_seed_gives_the_same_store_in_another_process_with_other_hashes() -> None:
    found = set()
    for hashes in ("1", "2"):
        command = [sys.executable, "-m", "tests.sim", "--seed", str(REPLAYED[0]), "--digest"]
        place = f"{TOP}{os.pathsep}{TOP / 'core'}"
        environment = {**os.environ, "PYTHONHASHSEED": hashes, "PYTHONPATH": place}
        done = subprocess.run(command, env=environment, cwd=TOP, capture_output=True, text=True, timeout=60, check=True)
        found.add(done.stdout.splitlines()[0])
    assert len(found) == 1


@pytest.mark.slow
@pytest.mark.rule("B2", "B3", "T6", "T8", "T9", "T11", "S9", "E7", "H3", "X2", "X3", "O2", "O3", "O6", "O7")
@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_seeded_bug_is_found(name: str) -> None:
    with worked_around(), MUTANTS[name]():
        for seed in range(SEEDS[name]):
            if name in FOCUS and planned(seed).focus != FOCUS[name]:
                continue
            world = World(seed)
            with contextlib.suppress(Exception):
                world.run()
            if world.violation is not None:
                rule, text = world.violation
                assert not BROKEN_MUTANT.search(text), f"the mutant itself is broken, mend it: {text}"
                print(f"mutant {name}: found by seed {seed}, {rule}")
                return
    pytest.fail(f"{name} lived through {SEEDS[name]} seeds: an invariant is missing", pytrace=False)


@pytest.mark.slow
@pytest.mark.rule("O1", "O2", "O4", "O6", "B2", "B3", "T6", "T8", "T9", "T11", "S9", "E7", "H3", "X2", "X3")
def test_many_worlds_break_no_invariant_and_meet_every_listed_fault(
    record_property: Callable[[str, object], None],
) -> None:
    covered: collections.Counter[str] = collections.Counter()
    began = time.process_time()
    with worked_around():
        for seed in range(FAST_SEEDS, MANY_SEEDS):
            covered.update(lived(seed).covered)
    pace = round((MANY_SEEDS - FAST_SEEDS) / (time.process_time() - began) * 60)
    print(f"{pace} seeds a minute on one core; faults covered {len(FAULTS & covered.keys())} of {len(FAULTS)} listed")
    record_property("seeds a minute", pace)
    assert FAULTS - covered.keys() == set(), "faults that no seed met"


MANY_SEEDS = 900
"""About a minute on one core; the rest is in test_simulation_long.py, which another worker of xdist takes."""


def test_there_are_enough_seeded_bugs() -> None:
    assert len(MUTANTS) >= LEAST_MUTANTS
