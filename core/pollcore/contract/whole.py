"""What can be said of a contract only when all of it is read.

Job: which expressions it has and what they read, and what belongs together across tables (steps that are named, the
item, the place of the key). Must not know: how a table is read, files, answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from pollcore.contract.build_batch import check_batch
from pollcore.contract.expressions import Expression, Keys
from pollcore.contract.lines import Path
from pollcore.contract.model import Contract
from pollcore.contract.near import did_you_mean
from pollcore.contract.tables import Table
from pollcore.facts import Verdict


def check_whole(root: Table, contract: Contract) -> None:
    """Raises ContractError: a step that does not exist, an item that nothing finds, a key in the credential's place, a
    state that is listed and never comes."""
    _check_never(root, contract)
    _check_steps(root, contract)
    _check_item(root, contract)
    check_batch(root, contract)
    _check_key_header(root, contract)
    _check_region(root, contract)


def finished(contract: Contract) -> Contract:
    """The contract with what can be known of its expressions: roots, body paths, headers."""
    read = list(_expressions(contract))
    header = frozenset({contract.request_id_header} if contract.request_id_header else ())
    return replace(
        contract,
        needs=frozenset(str(root) for part in read for root in part.roots),
        prefixes=_prefixes(read),
        kept_headers=_headers(read) | header,
    )


def _expressions(contract: Contract) -> Iterator[Expression]:
    """Every expression that reading a status answer may evaluate."""
    success, identity, error, progress = contract.success, contract.identity, contract.error, contract.progress
    found: list[Expression | None] = [contract.table.value, contract.human_explanation, contract.request_id_path]
    for rule in contract.rules:
        found += [rule.when, rule.state_from, rule.explanation_from]
    for step in contract.steps:
        found += [step.next_url, *(part for _, part in step.remember), *(part for part, _, _ in step.then)]
        found += [step.item.entries, step.item.job_id] if step.item is not None else []
        found += [step.each.children] if step.each is not None else []
    found += [*(field.path for field in success.requires), *success.forbids, *(part for _, part in success.fields)]
    found += [one.when for one in success.qualifiers]
    found += [identity.job_id, identity.account, identity.attempt, error.message, error.code, error.retryable]
    found += [progress.value, progress.total] if progress is not None else []
    for hint in contract.hints:
        found += [hint.path, hint.when]
    for expiry in contract.expiries:
        found += [expiry.path, expiry.anchor]
    if contract.submission is not None and contract.submission.answer is not None:
        answer = contract.submission.answer
        found += [answer.job_id, answer.status_url, *(part for _, part in answer.params)]
    for plan in (contract.cancel, contract.cancel and contract.cancel.force):
        if plan is not None:
            found += [plan.done_when, plan.refused_when, plan.available_at]
    if contract.pages is not None:
        found += [contract.pages.next, contract.pages.token]
    return (part for part in found if part is not None)


def _check_never(root: Table, contract: Contract) -> None:
    for name in contract.table.never:
        place = contract.meant.get(Verdict(name))
        if place is not None:
            root.document.fail(("states", "never", name), f"{place} means {name}: take one of the two out")


def _check_steps(root: Table, contract: Contract) -> None:
    names = {step.name for step in contract.steps}
    for n, rule in enumerate(contract.rules):
        if rule.step is not None and rule.step not in names:
            root.document.fail(("rules", n, "step"), f'"{rule.step}" is no step{did_you_mean(rule.step, names)}')
    for step_name in sorted(contract.identity.steps - names):
        root.document.fail(("identity", "steps"), f'"{step_name}" is no step{did_you_mean(step_name, names)}')
    for n, scope in enumerate(contract.scopes):
        if scope.step is not None and scope.step not in names:
            place: Path = ("caps", "scopes", n, "step")
            root.document.fail(place, f'"{scope.step}" is no step{did_you_mean(scope.step, names)}')


def _check_item(root: Table, contract: Contract) -> None:
    if any(step.item is not None for step in contract.steps):
        return
    for key, part in _named_expressions(contract):
        if "item" in part.roots:
            root.document.fail(key, "reads item, and nothing says where it is: give [status.item] with entries")


def _named_expressions(contract: Contract) -> Iterator[tuple[Path, Expression]]:
    """Where an author most likely reads the item."""
    if contract.table.value is not None:
        yield ("state", "value"), contract.table.value
    for n, rule in enumerate(contract.rules):
        for key, part in (("when", rule.when), ("state_from", rule.state_from)):
            if part is not None:
                yield ("rules", n, key), part
    for part in _expressions(contract):
        yield ("status",), part


def _check_key_header(root: Table, contract: Contract) -> None:
    """The idempotency key never takes the credential's place."""
    header = contract.submission.key_header if contract.submission is not None else None
    if header is None or contract.credential_kind != "header":
        return
    if header.lower() in {name.lower() for name in contract.credential_names}:
        root.document.fail(("submission", "idempotency", "header"), f'"{header}" carries the credential')


def _check_region(root: Table, contract: Contract) -> None:
    """A signature covers the region: it is a declared parameter, required or with a default."""
    if contract.credential_kind != "sigv4":
        return
    name = contract.credential_names[1]
    param = next((param for param in contract.params if param.name == name), None)
    if param is None or not (param.required or param.default):
        root.document.fail(
            ("credential", "names"), f"[params.{name}] tells the region: declare it, required = true or with a default"
        )


def _prefixes(expressions: Iterable[Expression]) -> tuple[Keys, ...]:
    found = {prefix for part in expressions for prefix in part.prefixes if prefix[0] == "body"}
    return tuple(sorted(found, key=str))


def _headers(expressions: Iterable[Expression]) -> frozenset[str]:
    paths = [path for part in expressions for path in part.prefixes]
    named = {str(path[2]) for path in paths if path[:2] == ("http", "headers") and len(path) > 2}
    return frozenset(named | ({"link"} if any(path[:2] == ("http", "links") for path in paths) else set()))
