"""What `doctor` says of the audit, in one line.

Job: state of chain, keys and anchor -> state, text, way out. Must not know: how any of it works.
"""

from __future__ import annotations

from pollcore.adapters.audit_anchor import AuditStore
from pollcore.adapters.audit_checkpoint import AuditKeeper
from pollcore.adapters.audit_safe import KEYRING
from pollcore.facts import CredentialUnavailable, Moment, PollconsoleError, Refused

MEND = "pollconsole audit verify"
BACK = "put the store back, or a backup of it; 'pollconsole audit accept-loss' begins anew without it"
MOVE = "'pollconsole audit move-keys' takes them out of the home: into a keyring, or where [audit] key_file says"


async def lost_chain(keeper: AuditKeeper) -> str | None:
    """What the anchor knows of the chain of a home whose store has none; None: nothing, or it cannot be asked."""
    try:
        found = await keeper.room.anchor()
    except (CredentialUnavailable, Refused):
        return None
    if found is None:
        return None
    return f"the audit of this home is gone; its anchor knows {found.seq:,} links of log {found.log_id.hex()}"


async def audit_fact(keeper: AuditKeeper, store: AuditStore, now: Moment, *, named: bool = False) -> dict[str, str]:
    """`{"state", "text", "mend"}`; raises the anchor on the way, if it can. Raises nothing of ours.

    *named*: the settings name the file that keeps the keys.
    """
    try:
        if not await keeper.load(store):
            lost = await lost_chain(keeper)
            if lost is not None:
                return {"state": "wrong", "text": f"nothing is sent and nothing granted: {lost}", "mend": BACK}
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
