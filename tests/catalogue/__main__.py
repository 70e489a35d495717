"""`python -m tests.catalogue`: the scoreboard; exit 0 when every API has a contract and every state lands right.

`python -m tests.catalogue NAME` shows one contract with the answers that stand for its states.
"""

from __future__ import annotations

import sys

from tests.catalogue.facts import apis
from tests.catalogue.reading import answer_for, contract_of, qualifiers_of, read_answer, written
from tests.catalogue.score import score, table


def main(arguments: list[str]) -> int:
    if not arguments:
        text, complete = table()
        print(text)
        return 0 if complete else 1
    wanted = arguments[0]
    api = next((one for one in apis() if wanted in (one.id, one.contract)), None)
    if api is None:
        print(f"no API {wanted!r}")
        return 2
    for state in api.states:
        given = answer_for(api, state)
        if given is None:
            print(f"{state.label}: no answer")
            continue
        got = read_answer(api, given)[0]
        flags = " ".join(qualifiers_of(got, contract_of(api)))
        print(f"{state.label}: {got.verdict.value} {got.detail or ''} {flags} {got.explanation or ''}")
        print(f"    {written(given)}")
    found = score(api)
    print("\n".join((f"{found.right} of {found.states}", *found.wrong)))
    return 0 if not found.wrong else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
