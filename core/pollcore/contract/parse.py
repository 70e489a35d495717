"""TOML text -> Contract.

Job: read every table in order, refuse every key that nothing reads. Must not know: files, instances, answers.
Raises ContractError `acme.toml:12: states.waiting: "Running" is also in states.failed; ...`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from pollcore.contract import build_answers, build_limits, build_states
from pollcore.contract.build_actions import build_cancel, build_result, build_submission
from pollcore.contract.build_origins import Origins, build_credential, build_params, checked_base_url
from pollcore.contract.build_requests import Plans, build_steps
from pollcore.contract.digest import digest_of
from pollcore.contract.document import Document, dotted
from pollcore.contract.model import Contract
from pollcore.contract.parts import Rule, StateTable, Step
from pollcore.contract.placeholders import written
from pollcore.contract.tables import Table
from pollcore.contract.templates import TextTemplate, UrlTemplate
from pollcore.contract.whole import check_whole, finished
from pollcore.facts import Policy

SCHEMA: Final = 1
NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
MAX_URLS: Final = 10
OF_INSTANCES: Final = ("allow_http", "contract")
"""Settings of an instance that authors look for in a contract."""


def parse(text: str, filename: str) -> Contract:
    """Read one contract.

    Args:
        filename: For messages only.

    Raises:
        ContractError: file, line, key, what is wrong and the way out. Limits: 256 KiB, depth 12, 5,000 values, 100
            rules; expressions 1,000 characters and 160 parts; patterns of the safe subset.
    """
    root = Table(Document(text, filename), (), {})
    root.values = root.document.root
    _schema(root)
    name = root.required_text("name", "the contract's name, as its file is called")
    if not NAME.fullmatch(name):
        root.fail("name", f'"{name}" is not lower-case letters, digits and hyphens (at most 64)')
    contract = Contract(
        name=name,
        title=root.text("title", max_length=200) or name,
        digest=digest_of(text, {}),
        filename=filename,
        snapshot_text=text,
        settings={},
        lines={dotted(path): line for path, line in root.document.lines.items()},
        allow_http=False,
        account=root.text("account", max_length=200),
        sources=tuple(filter(written, root.texts("sources"))),
        tested_live=written(root.text("tested_live")),
        **_sending_and_limits(root),
        **_reading(root),
    )
    root.text("notes", max_length=10_000)
    root.finish()
    check_whole(root, contract)
    return finished(contract)


def _sending_and_limits(root: Table) -> dict[str, Any]:
    """What goes out, where to, how often: the fields of Contract that requests and decisions read."""
    origins = Origins(root)
    terms = build_credential(root)
    params = build_params(root)
    urls = _urls(root)
    plans = Plans(origins, params, tuple(urls))
    steps, observation, evidence = build_steps(root, plans)
    poll_name, poll_text, held, timeouts = build_limits.build_long_poll(root)
    if poll_name is not None:
        steps = (_long_poll(steps[0], poll_name, poll_text, held), *steps[1:])
    plans.format = steps[0].request.format
    cancel, cancel_policy, force_policy = build_cancel(
        root, plans, build_limits.build_cancel_policy, build_limits.build_force_policy
    )
    result, pages = build_result(root, plans)
    submission = build_submission(root, plans)
    console_url = root.made("console_url", lambda text: UrlTemplate(text, plans.common))
    limits = build_limits.LimitParts(root)
    concurrency, per_minute, scopes = build_limits.build_caps(root)
    policy = Policy(
        schedule=build_limits.build_schedule(root, build_limits.build_settle(root)),
        default=limits.default,
        ceiling=limits.ceiling,
        retention=limits.retention,
        extend=limits.extend,
        max_extensions=limits.max_extensions,
        hold=limits.hold,
        max_holds=limits.max_holds,
        cancel=cancel_policy,
        force_cancel=force_policy if cancel_policy is not None else None,
        can_resubmit=submission is not None and submission.has_key and submission.request is not None,
        observation_read_only=observation == "read_only",
        least_mode=terms.least_mode,
        session_minutes=terms.session_minutes,
        session_calls=terms.session_calls,
    )
    return {
        "policy": policy,
        "origins": tuple(origins.allowed),
        "bare_origins": frozenset(origins.bare),
        "request_origins": tuple(origin for origin in origins.allowed if "*" not in origin),
        "base_url": origins.base_url,
        "requires_base_url": origins.required,
        "base_url_required": origins.required,
        "urls": {key: value for key, value in urls.items() if value is not None},
        "url_names": tuple(urls),
        "console_url": console_url,
        "credential_kind": terms.kind,
        "credential_names": terms.names,
        "credential_optional": terms.optional,
        "reveals": terms.reveals,
        "params": params,
        "observation": observation,
        "evidence": written(evidence),
        "deadline_basis": limits.deadline_basis,
        "retention_note": limits.retention_note,
        "concurrency": concurrency,
        "per_minute": per_minute,
        "scopes": scopes,
        "steps": steps,
        "long_poll_timeouts": timeouts,
        "cancel": cancel,
        "result": result,
        "pages": pages,
        "submission": submission,
    }


def _reading(root: Table) -> dict[str, Any]:
    """What answers mean: the fields of Contract that reading uses."""
    table, rules = build_states.build_table(root), build_states.build_rules(root)
    if table.value is None and not rules:
        root.fail("state", 'missing; say where the state is: [state] value = "body.status", or give [[rules]]')
    forbidden_grace, forbidden_max = build_answers.build_forbidden(root)
    request_id = root.table("request_id") or Table(root.document, ("request_id",), {})
    header, path = request_id.text("header"), build_states.expression(request_id, "path")
    request_id.finish()
    human = root.table("needs_human") or Table(root.document, ("needs_human",), {})
    human_explanation = build_states.expression(human, "explanation")
    human.finish()
    return {
        "table": table,
        "rules": rules,
        "success": build_answers.build_success(root),
        "not_found": build_answers.build_not_found(root),
        "forbidden_grace": forbidden_grace,
        "forbidden_max": forbidden_max,
        "redirect": build_answers.build_redirect(root),
        "identity": build_answers.build_identity(root),
        "error": build_answers.build_error(root),
        "human_explanation": human_explanation,
        "progress": build_answers.build_progress(root),
        "request_id_header": header.lower() if header else None,
        "request_id_path": path,
        "hints": build_limits.build_hints(root),
        "expiries": build_limits.build_expiries(root),
        "final_states": _final_states(table, rules),
    }


def _schema(root: Table) -> None:
    schema = root.raw("schema")
    if schema != SCHEMA or isinstance(schema, bool):
        root.fail("schema" if "schema" in root else None, f"schema must be {SCHEMA}: this program reads no other")
    for key in OF_INSTANCES:
        if key in root:
            root.fail(key, "is set in [providers.NAME] of config.toml, not in a contract")
    root.refuse_unknown()


def _urls(root: Table) -> dict[str, str | None]:
    """`[urls]`: further base URLs that an instance sets (`admin = {}`, or with a default)."""
    table = root.table("urls")
    found: dict[str, str | None] = {}
    if table is None:
        return found
    if len(table.values) > MAX_URLS:
        root.fail("urls", f"more than {MAX_URLS} entries")
    for name in table.values:
        inner = table.table(name)
        assert inner is not None
        default = inner.text("default")
        inner.text("about")
        inner.finish()
        found[name] = checked_base_url(default, partial(inner.fail, "default")) if default else None
    return found


def _long_poll(step: Step, name: str, text: str, held: int) -> Step:
    """T10: the wait parameter, and a client that waits longer than the provider holds."""
    plan = step.request
    query = (*plan.query, (name, TextTemplate(text, frozenset())))
    total = max(plan.total_ms, held + build_limits.LONG_POLL_MARGIN)
    return replace(step, request=replace(plan, query=query, total_ms=total))


def _final_states(table: StateTable, rules: tuple[Rule, ...]) -> tuple[str, ...]:
    listed = [(text, meaning.verdict) for place in (table.texts, table.others) for text, meaning in place.items()]
    ruled = [(rule.state, rule.meaning.verdict) for rule in rules if rule.state and rule.meaning]
    return tuple(dict.fromkeys(text for text, verdict in (*listed, *ruled) if verdict.is_final and text))
