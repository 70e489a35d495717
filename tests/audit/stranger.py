"""A verifier that a stranger wrote from docs/audit.md: the standard library and Ed25519, nothing of this project.

Usage: python stranger.py FILE KEY. Prints what it found; exit 0 if the file is whole. Knows no repairs.
"""

import base64
import hashlib
import json
import struct
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def main(path: str, key: str) -> int:
    name, key_id, packed = key.split("+", 2)
    log_id, public = bytes.fromhex(name.split("/")[1]), base64.b64decode(packed)[1:]
    keys = {0: public}
    total = hashlib.sha256()
    head = hashlib.sha256(b"genesis" + log_id + public).digest()
    seq = epoch = signed = links = notes = 0
    with open(path, "rb") as file:  # noqa: PTH123 - a stranger's habit
        lines = file.read().splitlines(keepends=True)
    assert json.loads(lines[0])["log"] == log_id.hex(), "another log"
    total.update(lines[0])
    for line in lines[1:-1]:
        total.update(line)
        item = json.loads(line)
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
        one, size, magic, log, number, ep, writer, kind, salt, com, length = struct.unpack_from(
            ">BI20s16sQI16sB16s32sI", blob
        )
        body = blob[122:]
        assert (one, size, magic, log) == (1, 81, b"pollconsole/audit/1\0", log_id), "no link of this log"
        assert (number, len(body)) == (seq + 1, length), "a gap, or a wrong length"
        assert len(writer) + len(salt) == 32
        if kind == 4:
            told = json.loads(body)
            sign, read = base64.b64decode(told["sign"]), base64.b64decode(told["read"])
            message = b"pollconsole/audit/1 epoch\0" + log_id + struct.pack(">Q", number) + head
            message += struct.pack(">I", ep) + sign + read
            old = Ed25519PublicKey.from_public_bytes(keys[epoch])
            old.verify(base64.b64decode(told["signature"]), message)
            assert ep == epoch + 1
            epoch, keys[ep] = ep, sign
        assert ep == epoch, "a link of another epoch"
        assert com == bytes(32) or kind in (1, 5), "a clear link with a commitment"
        head = hashlib.sha256(blob + head).digest()
        assert head == base64.b64decode(item["hash"]), "altered"
        seq = number
    end = json.loads(lines[-1])["end"]
    assert end == {"links": links, "notes": notes, "sha256": total.hexdigest()}, "lines are missing or changed"
    print(f"{seq} links, signed up to {signed}, epoch {epoch}, key {key_id}")
    return 0 if signed == seq else 25


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except (AssertionError, InvalidSignature, ValueError, KeyError, struct.error) as error:
        print(f"not whole: {error!r}")
        sys.exit(20)
