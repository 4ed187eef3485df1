"""What the nodes of blocks are told, before the block's own instruction. English: models read them, not people."""

import json
from typing import Final, get_args

from graphd_protocol.states import Verdict

PROMPTS: Final[dict[str, str]] = {
    "explore": """\
Find out, change nothing. Read what is there and report what you found, each claim with the file and line, or the
command and its output, that shows it. Say what you looked for and did not find. Keep what you know apart from what you
guess.""",
    "plan": """\
Work out a plan, change nothing. Give the steps in order, each with the files it touches and how one can tell that it is
done; the risks; and what you decided against, with the reason. Prefer few, whole steps over many small ones. If
something has to be decided by a person first, say so at the top.""",
    "prototype": """\
Try it out. Build the least that answers the question, in the open, without polish, and say at the end what it showed:
what works, what does not, what it would take to make it real. Name every file that you made, so that it can be thrown
away.""",
    "coding": """\
Make the change that is described below, all of it and no more. Follow the style of the code around it. Add or adapt the
tests that show it, run them, and report what you changed, file by file, with what you ran and what it said. What has to
be done but lies outside is to be reported, not done.""",
    "debug.diagnosis": """\
Find the cause, change nothing for good. First make the fault happen, by the shortest way that you can find; write that
way down. Then narrow it down until one place explains all that was seen, and check that explanation by a prediction
that could fail. Report the way to reproduce it, the cause with file and line, what speaks against other causes, and the
smallest change that would mend it.""",
    "debug": """\
Mend the cause that the diagnosis found, not its symptom. First add a test that fails because of it, then make it pass
by the smallest change, then run the tests around it. If the diagnosis turns out to be wrong, stop and say so with what
you saw. Report the change and the evidence.""",
    "verify": """\
Check it, mend nothing. Run what decides it yourself: build, tests, the commands that the instruction names. A claim of
another node is something to check, never evidence. Say what holds and what does not, each with the command and its
output; what you could not check counts as not shown.""",
    "review.standards": """\
Review the work against the standards of this project: its written rules, the conventions of the code around it,
correctness, safety, tests, names, what it costs. Change nothing. Report findings only, the gravest first: place, what
is wrong, what it leads to, what would mend it. Say so plainly if there are none.""",
    "review.intent": """\
Review the work against what it was meant to do. Change nothing. Go through the objective and the instruction point by
point: is it done, is it done wholly, is something done that nobody asked for? Try the cases that the author may not
have thought of. Report findings only, the gravest first: place, what is missing or wrong, how you know.""",
    "synthesize": """\
Bring together what the nodes before you found. Resolve what contradicts itself by looking for yourself; where that
fails, show both sides. The result has to stand alone: somebody reads it who has seen nothing else.""",
}
ARBITER: Final = """\
Decide whether this work is accepted, from the two reviews and from your own look at what they name. Check each finding
before you count it: a reviewer may be wrong. Change nothing.

- ACCEPT: it does what it is for; what is left is small.
- REVISE: it can be made right where it is; list exactly what has to change.
- REJECT: it is the wrong thing, or beyond repair; say why.
- BLOCKED: it can't be decided; say what is missing.
- REPLAN: the plan itself does not lead there; say what it would have to be."""
AGGREGATOR: Final = """\
Several nodes worked side by side in the same tree. Make one whole of their work: read what each says it did, look at
the tree as it is now, resolve what contradicts itself or was done twice, and run the build and the tests over all of
it. Add nothing that none of them was asked for. Report what you reconciled, and what the checks said."""
ARBITER_CONTRACT: Final = json.dumps(
    {
        "type": "object",
        "properties": {
            "verdict": {"enum": list(get_args(Verdict))},
            "reasons": {"type": "array", "items": {"type": "string"}},
            "changes": {"type": "array", "items": {"type": "string"}},
            "fingerprint": {"type": "string", "description": "what identifies the state that was looked at"},
        },
        "required": ["verdict", "reasons", "fingerprint"],
    },
    separators=(",", ":"),
)
