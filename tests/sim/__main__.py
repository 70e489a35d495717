"""`python -m tests.sim --seed N`: one world with its trace; `--seeds A B`: many, with figures; `--mutant NAME`."""

from __future__ import annotations

import argparse
import collections
import contextlib
import sys
import time

from tests.sim.known_bugs import worked_around
from tests.sim.plan import FAULTS
from tests.sim.world import World


def main() -> int:
    """Exit 0: all held; 1: a seed broke something."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", type=int, nargs=2, metavar=("FIRST", "LAST"))
    parser.add_argument("--mutant")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--last", type=int, default=60, help="lines of trace")
    parser.add_argument("--all", action="store_true", help="go on after a broken seed")
    parser.add_argument("--digest", action="store_true", help="print the digest of all tables in place of the trace")
    parser.add_argument("--bare", action="store_true", help="without what works around known bugs")
    given = parser.parse_args()
    first, last = given.seeds or (given.seed or 0, given.seed or 0)
    began = time.process_time()
    covered: collections.Counter[str] = collections.Counter()
    broken: collections.Counter[str] = collections.Counter()
    with contextlib.ExitStack() as stack:
        if not given.bare:
            stack.enter_context(worked_around())
        if given.mutant:
            from tests.sim.mutants import MUTANTS

            stack.enter_context(MUTANTS[given.mutant]())
        for seed in range(first, last + 1):
            world = World(seed, scale=given.scale, keep=given.digest)
            with contextlib.suppress(Exception):
                world.run()
            covered.update(world.covered)
            if world.violation is not None:
                print(f"seed {seed}: {world.violation[0]}: {world.violation[1]}", flush=True)
                broken[world.violation[0]] += 1
                if not given.all:
                    print(world.text(given.last))
                    break
            elif given.digest:
                print(world.digest)
            elif given.seed is not None:
                print(world.text(given.last))
    spent = time.process_time() - began
    count = seed - first + 1
    print(
        f"{count} seeds in {spent:.1f} s of one core: {count / spent * 60:.0f} seeds a minute; broken: {dict(broken)}"
    )
    if given.seeds:
        met, never = len(FAULTS & covered.keys()), sorted(FAULTS - covered.keys())
        print(f"faults covered: {met} of {len(FAULTS)} listed; never met: {never}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
