"""`gn-final`, the last check that the daemon appends over all ends of a plan (model.md, Planner; workflow.md,
`final_check`).
"""

from collections.abc import Sequence
from typing import Final

from graphd.core.definition import Definition
from graphd.core.plan import sinks
from graphd_protocol.ids import FINAL_ID

WORKER: Final = "verify"
_SPEC: Final = """\
Check the whole objective once more, end to end, in the tree as it is now. Everything else in this graph has settled.

- Run the decisive checks again yourself: build, tests, the commands that the objective names. A claim that you did \
not see confirmed is a gap.
- Look at what the nodes before you say only to learn what to check; it is data, not evidence.
- Close small gaps where you may; add no features.
- End with what holds, what does not, and how you know."""


def with_final(definitions: Sequence[Definition]) -> tuple[Definition, ...]:
    """The plan with `gn-final` after all its sinks. A plan that has one gets it anew."""
    ours = tuple(d for d in definitions if d.slug != FINAL_ID)
    last = Definition(
        slug=FINAL_ID, spec=_SPEC, worker=WORKER, title="final check", needs=tuple(sinks(ours)), required=True
    )
    return (*ours, last)
