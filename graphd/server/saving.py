"""A graph's plan as a workflow file of the workspace. Source: spec workflow.md (`graphd save`)."""

import os
import threading
from pathlib import Path

from graphd.base.failpoints import failpoint
from graphd.base.refusal import Refused
from graphd.base.text import t


def write_workflow(workspace: Path, name: str, text: str, *, force: bool) -> Path:
    """Write `.agents/workflows/NAME.yaml`, whole or not at all. Blocks. Raises Refused.

    `alreadyExists` where the name is taken and `force` is not given, `notFound` where nothing can be written there.
    """
    path = workspace / ".agents" / "workflows" / f"{name}.yaml"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, text, force=force)
    except OSError as trouble:
        message = t("{file} can't be written: {trouble}", file=str(path), trouble=trouble.strerror or "")
        hint = t("make its folder writable; graphd save --dry-run prints the file")
        raise Refused("notFound", message, hint) from None
    return path


def _write(path: Path, text: str, *, force: bool) -> None:
    """Without `force` the name is taken by a link, which fails where there is one: no check that another could outrun.

    Each thread writes a file of its own first. Raises OSError.
    """
    other = path.with_suffix(".yml")
    if not force and other.exists():
        raise _taken(other)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with temporary.open("w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        failpoint("server.save.before")
        if force:
            temporary.replace(path)
        else:
            path.hardlink_to(temporary)
        failpoint("server.save.after")
    except FileExistsError:
        raise _taken(path) from None
    finally:
        temporary.unlink(missing_ok=True)


def _taken(path: Path) -> Refused:
    return Refused(
        "alreadyExists", t("{file} is there already", file=str(path)), t("another name, or graphd save --force")
    )
