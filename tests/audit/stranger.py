"""A verifier that a stranger wrote from docs/audit.md: the standard library and Ed25519, nothing of this project.

Usage: python stranger.py FILE KEY. FILE: of `audit export` or `archive`. Prints what it found; exit 0 if the file is
whole. Knows no repairs.
"""

import base64
import hashlib
import json
import struct
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

LINK = ">BI20s16sQI16sB16s32sI"


def new_keys(log_id: bytes, keys: dict[int, bytes], blob: bytes, head: bytes) -> int:
    """An epoch link: its keys, if those before them signed them behind *head*; returns the epoch."""
    told = json.loads(blob[122:])
    number, epoch = struct.unpack_from(">QI", blob, 41)
    sign, read = base64.b64decode(told["sign"]), base64.b64decode(told["read"])
    message = b"pollconsole/audit/1 epoch\0" + log_id + struct.pack(">Q", number) + head
    message += struct.pack(">I", epoch) + sign + read
    old = Ed25519PublicKey.from_public_bytes(keys[epoch - 1])
    old.verify(base64.b64decode(told["signature"]), message)
    keys[epoch] = sign
    return epoch


def begins(first: dict, log_id: bytes, public: bytes) -> tuple[int, int, bytes, dict[int, bytes]]:
    """Number, epoch and hash of the link before the first one of the file, and the keys that are known."""
    keys, epoch, after = {0: public}, 0, first.get("after") or {"seq": 0}
    for kept in first.get("keys", {}).get("epochs", ()):
        blob = base64.b64decode(kept["link"])
        number = new_keys(log_id, keys, blob, base64.b64decode(kept["before"]))
        if struct.unpack_from(">Q", blob, 41)[0] <= after["seq"]:
            epoch = number
    if after["seq"]:
        return after["seq"], epoch, base64.b64decode(after["hash"]), keys
    return 0, 0, hashlib.sha256(b"genesis" + log_id + public).digest(), keys


def main(path: str, key: str) -> int:
    name, key_id, packed = key.split("+", 2)
    log_id, public = bytes.fromhex(name.split("/")[1]), base64.b64decode(packed)[1:]
    total = hashlib.sha256()
    signed = links = notes = 0
    counts = {"operation": 0, "charge": 0, "event": 0}
    with open(path, "rb") as file:  # noqa: PTH123 - a stranger's habit
        lines = file.read().splitlines(keepends=True)
    assert json.loads(lines[0])["log"] == log_id.hex(), "another log"
    total.update(lines[0])
    first = json.loads(lines[0])
    before, epoch, head, keys = begins(first, log_id, public)
    seq, cut = before, head
    for line in lines[1:-1]:
        total.update(line)
        item = json.loads(line)
        record = next((name for name in counts if name in item), None)
        if record is not None:
            counts[record] += 1
            continue
        if "note" in item:
            notes += 1
            text, _, signature = item["note"].partition("\n\n")
            text += "\n"
            origin, size, root, kept = text.splitlines()
            raw = base64.b64decode(signature.split(" ")[2])
            assert origin == name, "a checkpoint of another log"
            assert (int(size), base64.b64decode(root), kept) == (seq, head, f"epoch {epoch}"), "a checkpoint of others"
            expected = hashlib.sha256(name.encode() + b"\n\x01" + keys[epoch]).digest()[:4]
            assert raw[:4] == expected, "a checkpoint by another key"
            Ed25519PublicKey.from_public_bytes(keys[epoch]).verify(raw[4:], text.encode())
            signed = seq
            continue
        links += 1
        blob = base64.b64decode(item["link"])
        one, size, magic, log, number, ep, writer, kind, salt, com, length = struct.unpack_from(LINK, blob)
        body = blob[122:]
        assert (one, size, magic, log) == (1, 81, b"pollconsole/audit/1\0", log_id), "no link of this log"
        assert (number, len(body)) == (seq + 1, length), "a gap, or a wrong length"
        assert len(writer) + len(salt) == 32
        if kind == 4:
            assert new_keys(log_id, keys, blob, head) == ep == epoch + 1
            epoch = ep
        assert ep == epoch, "a link of another epoch"
        assert com == bytes(32) or kind in (1, 5), "a clear link with a commitment"
        head = hashlib.sha256(blob + head).digest()
        assert head == base64.b64decode(item["hash"]), "altered"
        seq = number
        cut = head if number == first.get("cut") else cut
    end = json.loads(lines[-1])["end"]
    expected = {"links": links, "notes": notes, "sha256": total.hexdigest()}
    if "cut" in first:
        expected |= {f"{name}s": count for name, count in counts.items()}
        expected |= {"epoch": end["epoch"], "signature": end["signature"]}
        assert base64.b64decode(first["head"]) == cut, "it does not end where its first line says"
        if end["signature"] or any(counts.values()):
            message = b"pollconsole/audit/1 archive\0" + log_id + struct.pack(">QQ", before, first["cut"])
            message += cut + total.digest()
            Ed25519PublicKey.from_public_bytes(keys[end["epoch"]]).verify(base64.b64decode(end["signature"]), message)
    assert end == expected, "lines are missing or changed"
    print(f"{seq} links, signed up to {signed}, epoch {epoch}, key {key_id}")
    return 0 if signed == seq else 25


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except (AssertionError, InvalidSignature, ValueError, KeyError, struct.error) as error:
        print(f"not whole: {error!r}")
        sys.exit(20)
