"""Language features for workflow files, for any editor: pure functions over an `Analysis` of one text.

Positions are (line, column), zero-based, in code points; the server converts them. Nothing here reads a disk, waits or
raises for what a text says, except `rename`, which refuses by `RenameRefused`. Source: spec protocol.md, Language
features.
"""

from graphd.workflows.language.analysis import Analysis, NodeSpan, analyse, same_definition
from graphd.workflows.language.completion import Completion, complete
from graphd.workflows.language.fixes import Fix, fixes, related
from graphd.workflows.language.hovering import Hover, hover
from graphd.workflows.language.layout import Symbol, folding, hint_places, lens_places, symbols
from graphd.workflows.language.navigation import Highlight, definition, highlights, references
from graphd.workflows.language.places import Point, Span, replaced
from graphd.workflows.language.renaming import RenameRefused, prepare_rename, rename

__all__ = [
    "Analysis",
    "Completion",
    "Fix",
    "Highlight",
    "Hover",
    "NodeSpan",
    "Point",
    "RenameRefused",
    "Span",
    "Symbol",
    "analyse",
    "complete",
    "definition",
    "fixes",
    "folding",
    "highlights",
    "hint_places",
    "hover",
    "lens_places",
    "prepare_rename",
    "references",
    "related",
    "rename",
    "replaced",
    "same_definition",
    "symbols",
]
