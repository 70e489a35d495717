"""The mini contracts of tests/data/cases.json, written out in our language; also used by the replays of the cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[2] / "data" / "cases.json").read_text("utf-8"))
"""Answer sequences distilled from public bug reports of pollers, with the right outcome."""


def contract_text(case: dict[str, Any]) -> str:
    """The TOML of one case's contract: exact limits, its hints, grace and guards, nothing else."""
    mini = case["contract"]
    limits = mini["limits"]
    header = mini.get("auth", {}).get("header")
    lines = [
        "schema = 1",
        f'name = "{mini["provider"]}"',
        'tested_live = "the scripted provider of the case"',
        f"origins = [{_text(_origin(mini['status_url']))}]",
        "[credential]",
        f'kind = "header"\nnames = [{_text(header)}]' if header else 'kind = "bearer"',
        "optional = true",
        "[status]",
        f"url = {_text(mini['status_url'])}",
        'observation = "read_only"',
        'evidence = "a case of tests/data/cases.json"',
    ]
    if "answer_timeout_seconds" in limits:
        lines.append(f"total = {limits['answer_timeout_seconds']}")
    lines += ["[state]", f'value = "body.{mini["state_path"]}"']
    if mini["state_match"] == "casefold":
        lines.append("fold_case = true")
    if "unreadable_2xx" in mini:
        lines.append(f"unreadable_2xx = {_text(mini['unreadable_2xx'])}")
    lines += ["[states]", *(f"{name} = {json.dumps(values)}" for name, values in mini["states"].items())]
    for path in mini["success_requires"]:
        lines += ["[[success.requires]]", f'path = "body.{path}"']
    if "id_path" in mini:
        lines += ["[identity]", f'job_id = "body.{mini["id_path"]}"']
        lines += ["[submission.answer]", f'job_id = "body.{mini["id_path"]}"']
    if "error_path" in mini:
        lines += ["[error]", f'code = "body.{mini["error_path"]}"']
    if "not_found" in mini:
        lines += ["[not_found]", f"grace_seconds = {mini['not_found']['grace_seconds']}"]
    if "forbidden" in mini:
        lines += ["[forbidden]", f"grace_seconds = {mini['forbidden']['grace_seconds']}"]
    for key, path in mini.get("hints", {}).items():
        name = key.removesuffix("_path")
        lines += ["[[hints]]", f'name = "{name}"', f'path = "body.{path}"', f'unit = "{_unit(name)}"', 'cap = "24h"']
    return "\n".join((*lines, *_limits(limits), ""))


def _limits(limits: dict[str, Any]) -> list[str]:
    return [
        "[schedule]",
        f"base_delay = {limits['base_wait_seconds']}",
        f"max_delay = {limits['max_wait_seconds']}",
        "[limits]",
        'deadline_basis = "decide-by: the deadline of the case"',
        "extend = [{ minutes = 15, checks = 4 }]",
        "[limits.default]",
        f"deadline = {limits['deadline_seconds']}",
        f"max_status_requests = {limits['max_status_requests']}",
        f"max_transport_failures = {limits['max_transport_failures']}",
        "max_rate_limited = 10",
        "[cancel]",
        'method = "POST"',
        'url = "https://api.example.test/v1/jobs/{job_id}/cancel"',
        'consequences = "the job stops"',
        "confirm = { minutes = 10, checks = 5 }",
    ]


def _unit(name: str) -> str:
    return "iso" if name.endswith("_at") else "seconds"


def _origin(url: str) -> str:
    return "/".join(url.split("/")[:3])


def _text(value: str) -> str:
    return json.dumps(value)
