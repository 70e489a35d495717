"""One worked example for each need R01 to R39: docs/contracts.md prints it, this test runs it."""

from __future__ import annotations

import pytest
from tests.core.contract.needs import DOCS, Example, Run, examples

EXAMPLES = examples()


@pytest.mark.rule("S1", "S2", "S4", "H1", "H2", "H4", "T3")
@pytest.mark.parametrize("example", EXAMPLES, ids=[one.title.split(":")[0].replace(" ", "-") for one in EXAMPLES])
def test_an_example_of_the_documentation_asks_and_reads_as_it_says(example: Example) -> None:
    run = Run(example)
    for line in example.lines:
        run.play(line)
    assert run.checked > 0


def test_every_need_has_an_example_and_a_row_that_names_its_keys() -> None:
    wanted = {f"R{n:02}" for n in range(1, 40)}
    assert {need for one in EXAMPLES for need in one.needs} == wanted
    table = DOCS.partition("## Needs and keys")[2].partition("\n## ")[0]
    assert all(need in table for need in wanted)
