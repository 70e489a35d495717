"""Where everything lies on this machine: the home folder, its files, and whether it is fit for a store.

Job: paths, modes, refusals. Must not know: what the files hold; it opens none of them.
Source: spec O6; design "places".
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path
from typing import Final

import msgspec
import platformdirs

from pollcore.facts import StoreUnusable

VARIABLE: Final = "POLLCONSOLE_HOME"
FOLDER_MODE: Final = 0o700
FULL_BELOW: Final = 64 << 10
"""Free bytes with which the shared memory beside a store, 32 KiB, may not be had."""
FILE_MODE: Final = 0o600
MOUNT_TABLE: Final = "/proc/self/mountinfo"
NETWORK: Final = frozenset(
    (
        *("nfs", "nfs3", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "ncpfs", "9p", "afs", "afpfs", "ceph"),
        *("glusterfs", "lustre", "gpfs", "beegfs", "ocfs2", "gfs2", "webdav", "davfs", "virtiofs", "vboxsf"),
        *("vmhgfs", "prl_fs"),
    )
)
"""Their locks or their shared memory do not reach other machines, or lie about it."""
MAX_SHOWN: Final = 200
"""Characters that are shown of what is too long for a path."""
OURS: Final = (
    *("pollconsole.db", "config.toml", "keys.toml", "ui.json", "providers", "themes", "workers", "reading.key"),
    *("audit.lock", "archives", "crashes", "exports"),
)
"""How the names of everything begin that this program puts into a home, or reads there."""
MAX_BESIDE: Final = 1_000
"""Neighbours of a missing home that are looked at for a near name."""
CLOUD_FOLDERS: Final = ("dropbox", "onedrive", "google drive", "googledrive", "icloud", "mobile documents", "nextcloud")


class Places(msgspec.Struct, frozen=True):
    """The home and the paths in it (names fixed by the design)."""

    home: Path

    @property
    def database(self) -> Path:
        """The store."""
        return self.home / "pollconsole.db"

    @property
    def providers(self) -> Path:
        """Contracts of the user's own; they win over shipped ones of the same name."""
        return self.home / "providers"

    @property
    def themes(self) -> Path:
        """Themes of the user's own."""
        return self.home / "themes"

    @property
    def config(self) -> Path:
        """Settings."""
        return self.home / "config.toml"

    @property
    def keys(self) -> Path:
        """Key bindings."""
        return self.home / "keys.toml"

    @property
    def ui(self) -> Path:
        """What the screen remembers."""
        return self.home / "ui.json"

    @property
    def workers(self) -> Path:
        """One lock file for each worker."""
        return self.home / "workers"


def find(home: str | None = None) -> Places:
    """The home by --home, else POLLCONSOLE_HOME, else the platform's user data folder. Creates nothing.

    Raises:
        StoreUnusable: a relative path, and the current folder was deleted; or what can be no path here.
    """
    named = home or os.environ.get(VARIABLE)
    place = Path(named).expanduser() if named else Path(platformdirs.user_data_dir("pollconsole", appauthor=False))
    try:
        full = os.path.abspath(place)  # noqa: PTH100 - resolve() would follow the symlink that is refused
    except FileNotFoundError:
        raise StoreUnusable(
            f"home {place}: counts from the current folder, which does not exist any more: "
            f"give a full path with --home or {VARIABLE}, or change to a folder that exists"
        ) from None
    try:
        os.lstat(full)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise StoreUnusable(
                f"home {full[:MAX_SHOWN]}...: too long for a path: give another one with --home or {VARIABLE}"
            ) from None
    return Places(Path(full))


def is_named(home: str | None = None) -> bool:
    """Whether somebody named the home; False: it is the platform's."""
    return bool(home or os.environ.get(VARIABLE))


def beside(folder: Path) -> list[str]:
    """Names of the folders beside *folder* that hold a store, sorted: what a misspelt home may have meant."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder.parent))[:MAX_BESIDE]
    except OSError:
        return []
    return [name for name in names if Places(folder.parent / name).database.is_file()]


def can_be_written(folder: Path) -> bool:
    """False: this user may not write to *folder*, or its file system is mounted read-only."""
    return os.access(folder, os.W_OK | os.X_OK)


def prepare(places: Places) -> Places:
    """Create what is missing with mode 0700, and refuse a home that is not safe.

    A folder that held other things before is left with the mode that it has: what is ours in it is closed by itself.
    A home that exists and cannot be written is left as it is: its store can still be read, whoever owns it, as a copy
    that is evidence.

    Raises:
        StoreUnusable: a symlink, a file, another user's folder that can be written, one that everybody uses, or a
            network file system.
    """
    read_only = places.home.is_dir() and not can_be_written(places.home)
    for folder in (places.home, places.workers):
        try:
            if not read_only:
                folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            found = folder.lstat()
        except FileNotFoundError:
            continue  # a home that can only be read has no workers
        except OSError as error:
            raise StoreUnusable(
                f"home {folder}: cannot be made ({error.strerror}): name another folder with --home or {VARIABLE}"
            ) from error
        if not stat.S_ISDIR(found.st_mode):
            raise StoreUnusable(f"home {folder}: a symlink or no folder: name the real folder with --home")
        if found.st_uid != os.getuid() and not read_only:
            raise StoreUnusable(
                f"home {folder}: it belongs to another user: name a folder of your own with --home, or, to read it "
                "alone, a copy that you cannot write to"
            )
        if found.st_mode & stat.S_ISVTX or folder == folder.parent:
            raise StoreUnusable(f"home {folder}: everybody uses it: name a folder of your own in it with --home")
        if stat.S_IMODE(found.st_mode) != FOLDER_MODE and not read_only and (folder != places.home or is_ours(folder)):
            folder.chmod(FOLDER_MODE)
    refuse_network(places.home)
    return places


def is_ours(folder: Path) -> bool:
    """Whether nobody else may need to read *folder*: it holds nothing but what a home holds."""
    with os.scandir(folder) as entries:
        return all(entry.name.startswith(OURS) for entry in entries)


def is_foreign(folder: Path) -> bool:
    """Whether *folder* holds other things and nothing of a home's: a misspelt name more likely than a home to be."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries]
    except OSError:
        return False
    return bool(names) and not any(name.startswith(OURS) for name in names)


def file_system(folder: Path, table: str | None = None) -> str:
    """The type of the file system that *folder* lies on, by the mount table; empty: no mount table on this platform."""
    if table is None:
        try:
            table = Path(MOUNT_TABLE).read_text("utf-8", "surrogateescape")
        except OSError:
            return ""
    real = os.path.realpath(folder)
    best, kind = "", ""
    for line in table.splitlines():
        left, dash, right = line.partition(" - ")
        fields = left.split(" ")
        if not dash or len(fields) < 5:
            continue
        point = fields[4].replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
        inside = point == "/" or real == point or real.startswith(point + "/")
        # of two mounts on one point the later one is seen
        if inside and len(point) >= len(best):
            best, kind = point, right.split(" ")[0]
    return kind


def refuse_network(folder: Path) -> None:
    """Raises StoreUnusable on a network or user-space file system (SQLite's locks need one host)."""
    kind = file_system(folder)
    if kind.lower() in NETWORK or kind.lower().startswith("fuse"):
        raise StoreUnusable(
            f"home {folder}: {kind} is a network or user-space file system, where locks are not safe: "
            f"name a folder on a local disk with --home or {VARIABLE}"
        )


def warnings(folder: Path) -> list[str]:
    """What `doctor` says of the folder: a cloud folder copies files while they are written."""
    parts = [part.lower() for part in folder.parts]
    named = next((c for c in CLOUD_FOLDERS if any(c in part for part in parts)), None)
    return [f"home {folder}: looks like a cloud folder ({named}); its copying can damage the store"] if named else []


def free_bytes(folder: Path) -> int:
    """Free bytes for this user on the folder's file system."""
    return shutil.disk_usage(folder).free


def is_full(folder: Path) -> bool:
    """Whether the folder's file system has no room for even the smallest file of SQLite's: no blocks, or no inodes."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < FULL_BELOW or (found.f_files > 0 and found.f_favail == 0)
