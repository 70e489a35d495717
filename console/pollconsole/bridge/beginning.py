"""A contract file begun: what saved answers let one propose, and the file written where nothing is.

Job: saved answers -> proposals, fields -> text -> a new file. Must not know: questions, flags, output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pollconsole import home_files
from pollcore.facts import Answer, Refused

FOLDER_MODE: Final = 0o700


def proposed(answers: Sequence[Answer], job_id: str | None, state: str | None = None) -> dict[str, Any]:
    """Paths that may hold state and job id in saved answers, and the states that were seen; nothing is decided by it.

    *state*: where the author says that it is; else the first path. `statuses`: HTTP statuses of the answers.
    `job_id_is_known`: the first of `job_id` holds *job_id* itself. `unreadable`: how many answers are no JSON.
    """
    from pollcore.contract import proposing
    from pollcore.contract.parts import JSON
    from pollcore.reading import formats, strict_json

    bodies = []
    scopes = []
    for answer in answers:
        http = {"status": answer.status, "headers": dict(answer.headers)}
        scopes.append({"http": http, "body": None})
        try:
            bodies.append(formats.decode(answer.body, JSON))
        except strict_json.Unreadable:
            continue
        scopes[-1]["body"] = bodies[-1]
    found = proposing.proposal(bodies, job_id)
    return {
        "state": [{"path": one.path, "value": one.value} for one in found.state_paths],
        "job_id": [{"path": one.path, "value": one.value} for one in found.job_id_paths],
        "job_id_is_known": job_id is not None and any(str(one.value) == job_id for one in found.job_id_paths[:1]),
        "states": list(proposing.seen_at(state, scopes) if state else found.states),
        "statuses": sorted({answer.status for answer in answers}),
        "unreadable": len(answers) - len(bodies),
    }


def text_of_new(fields: Mapping[str, Any], found: Mapping[str, Any] | None) -> str:
    """The text of a new contract file. *fields*: of `beginning.Begun`; *found*: of `proposed`.

    Raises ContractError: a word of the author's cannot be part of a contract (the name, an expression, an address).
    """
    from pollcore.contract import beginning, parse, proposing

    given = {name: value for name, value in fields.items() if value}
    if found is not None:
        places = {name: [proposing.Field(**one) for one in found[name]] for name in ("state", "job_id")}
        if places["state"]:
            given.setdefault("state", places["state"][0].path)
        if places["job_id"]:
            sure = found["job_id_is_known"]
            given["job_id" if sure else "job_id_proposed"] = places["job_id"][0].path
        given["also"] = tuple(one for one in places["state"] if one.path != given.get("state"))
        given["seen"] = tuple(found["states"])
    text = beginning.text(beginning.Begun(**given))
    parse(text, f"{given['name']}.toml")
    return text


def begin(home: Path | None, name: str, text: str, file: str | None) -> str:
    """Write *text* to *file*, else to `providers/NAME.toml` of *home*; the path. Nothing is ever overwritten.

    Raises Refused (code `file`), StoreUnusable: no safe home.
    """
    from pollcore.adapters import places
    from pollcore.adapters.user_files import why_unwritten

    if file is None:
        folder = places.prepare(places.find(None if home is None else str(home))).providers
        try:
            folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
        except OSError as error:
            raise Refused(f"{folder}: cannot be made: {error.strerror}", code="file") from None
        path = folder / f"{name}.toml"
    else:
        path = Path(file)
    try:
        home_files.create(path, text)
    except FileExistsError:
        raise Refused(f"{path}: exists already; nothing is overwritten, choose another name", code="file") from None
    except (OSError, ValueError) as error:
        why = why_unwritten(error) if isinstance(error, OSError) else "not a usable path"
        raise Refused(f"{path}: cannot be written, and is not there: {why}", code="file") from None
    return str(path)
