"""`python -m generator` writes everything that is generated of the protocol; with `release` the released copy.

A released copy is written once for each wire number, and never changed.
"""

import sys
from pathlib import Path

from generator import lua, pages, schema, typescript
from graphd_protocol import PROTOCOL_MAX

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("protocol/spec.md", "docs/protocol.md")


def generated() -> dict[str, str]:
    """Every generated file by its path from the root, as it should be."""
    protocol = schema.protocol()
    files = {
        "protocol/protocol.json": schema.text(),
        "protocol/types/graphd.d.ts": typescript.text(protocol),
        "protocol/types/graphd.lua": lua.text(protocol),
    }
    return files | {page: pages.filled((ROOT / page).read_text(encoding="utf-8"), protocol) for page in PAGES}


def main(arguments: list[str]) -> int:
    """Write; returns the exit code."""
    for name, text in generated().items():
        (ROOT / name).write_text(text, encoding="utf-8")
    if arguments == ["release"]:
        released = ROOT / "protocol" / "released" / f"{PROTOCOL_MAX}.json"
        if released.exists():
            sys.stderr.write(f"{released.name} is released already: raise PROTOCOL_MAX for a change that breaks\n")
            return 1
        released.write_text(schema.text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
