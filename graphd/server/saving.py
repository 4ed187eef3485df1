"""A graph's plan as a workflow file of the workspace. Source: spec workflow.md (`graphd save`)."""

import os
from pathlib import Path

from graphd.base.failpoints import failpoint
from graphd.base.refusal import Refused
from graphd.base.text import t


def write_workflow(workspace: Path, name: str, text: str, *, force: bool) -> Path:
    """Write `.agents/workflows/NAME.yaml`, whole or not at all. Blocks. Raises Refused (alreadyExists).

    Without `force` the name is taken by a link, which fails where there is one: no check that another could outrun.
    """
    folder = workspace / ".agents" / "workflows"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yaml"
    other = folder / f"{name}.yml"
    if not force and other.exists():
        raise _taken(other)
    temporary = folder / f".{name}.yaml.{os.getpid()}"
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
    return path


def _taken(path: Path) -> Refused:
    return Refused(
        "alreadyExists", t("{file} is there already", file=str(path)), t("another name, or graphd save --force")
    )
