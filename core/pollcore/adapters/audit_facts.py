"""What `doctor` says of the audit, in one line.

Job: state of chain, keys and anchor -> state, text, way out. Must not know: how any of it works.
"""

from __future__ import annotations

from pollcore.adapters.audit_anchor import AuditStore
from pollcore.adapters.audit_checkpoint import AuditKeeper
from pollcore.adapters.audit_safe import KEYRING
from pollcore.facts import Moment, PollconsoleError

MEND = "pollconsole audit verify"
MOVE = "'pollconsole audit move-keys' takes them out of the home: into a keyring, or where [audit] key_file says"


async def audit_fact(keeper: AuditKeeper, store: AuditStore, now: Moment, *, named: bool = False) -> dict[str, str]:
    """`{"state", "text", "mend"}`; raises the anchor on the way, if it can. Raises nothing of ours.

    *named*: the settings name the file that keeps the keys.
    """
    try:
        if not await keeper.load(store):
            return {"state": "note", "text": "no chain has begun: the first 'run', 'submit' or console begins it"}
        await keeper.anchor(store, now)
        tip = await store.audit_tip()
    except PollconsoleError as error:
        return {"state": "wrong", "text": str(error), "mend": MEND}
    state = keeper.state
    text = f"{tip.seq if tip else 0:,} links, epoch {state.epoch}, keys in the {state.keys_in}, {state.key}"
    if state.alarm:
        return {"state": "wrong", "text": f"nothing is sent and nothing granted: {state.why}", "mend": MEND}
    if state.why is not None:
        return {
            "state": "note",
            "text": f"{text}; {state.why}",
            "mend": "polls go on; without an anchor no grant is given",
        }
    if keeper.room.anchor_in != KEYRING:
        what = f"{text}, anchored there; every program of this user can read it"
        if named:
            return {"state": "note", "text": what}
        what += ", and whoever puts the whole folder back to an old state puts the anchor back with it"
        return {"state": "note", "text": what, "mend": MOVE}
    if state.keys_in != KEYRING:
        return {"state": "ok", "text": f"{text} when it began, in the keyring now, anchored there"}
    return {"state": "ok", "text": f"{text}, anchored"}
