"""The state folder: made private, checked for owner and file system before anything in it is opened."""

import os
import stat
from pathlib import Path

from graphd.base.text import t
from graphd.store.refusals import FileSystemUnfit, FolderUnsafe

MOUNTS = Path("/proc/self/mountinfo")

REMOTE = frozenset(
    [
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "coda", "ceph", "lustre", "gpfs", "beegfs",
        "ocfs2", "gfs2", "glusterfs", "orangefs", "9p", "virtiofs", "vboxsf", "prl_fs", "drvfs", "fakeowner",
        "fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.glusterfs", "fuse.ceph-fuse", "fuse.vmhgfs-fuse",
        "fuse.grpcfuse", "fuse.juicefs", "fuse.gcsfuse", "fuse.goofys", "fuse.davfs", "fuse.nfs",
    ]
)  # fmt: skip
"""File systems of a network, or of a virtual machine's host: `flock` holds for one host alone (pitfalls.md 1.12)."""


def prepare_folder(folder: Path, *, mounts: Path = MOUNTS) -> None:
    """Make `folder` (0700); refuse one that is not ours or not local. Raises FolderUnsafe, FileSystemUnfit."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise FolderUnsafe(t("the state folder is not a folder"), t("remove what is there"), path=folder)
    if found.st_uid != os.geteuid():
        hint = t("set GRAPHD_STATE_DIR to a folder of your own")
        raise FolderUnsafe(t("the state folder belongs to uid {uid}", uid=found.st_uid), hint, path=folder)
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)
    kind = file_system(folder, mounts=mounts)
    if kind in REMOTE:
        hint = t("set GRAPHD_STATE_DIR to a folder on a local disk; the workspace itself may stay where it is")
        message = t("the state folder is on {kind}, where locks are not reliable", kind=kind)
        raise FileSystemUnfit(message, hint, path=folder, fileSystem=kind)


def file_system(path: Path, *, mounts: Path = MOUNTS) -> str | None:
    """The type of the file system that `path` is on, or None where the kernel has no mount table to read.

    The longest mount point above it counts, the later line where two are mounted on one point. The device
    number is no key: btrfs subvolumes and overlays show others than the table.
    """
    try:
        lines = mounts.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    real = path.resolve()
    best, kind = -1, None
    for line in lines:
        left, _, right = line.partition(" - ")
        point = Path(_unescaped(left.split(" ")[4]))
        if len(point.parts) >= best and real.is_relative_to(point):
            best, kind = len(point.parts), right.split(" ")[0]
    return kind


def _unescaped(text: str) -> str:
    """Undo the octal escapes that the kernel writes for space, tab, newline and backslash."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
