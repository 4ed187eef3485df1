"""What each key of a workflow file is for, in a sentence or two: for hover, completion and the JSON Schema.

Apart from `schema`, which says what is allowed; a test keeps both complete. Source: spec workflow.md.
"""

from typing import Final

from graphd.base.text import t
from graphd.workflows import schema

_WORKER: Final = t("Who does the node: `shell` runs the prompt as a script, the others are agents.")
_NEEDS: Final = t("Nodes whose output this one reads; it starts when all of them have settled.")
_REQUIRED: Final = t(
    "Whether the graph is blocked when this node fails. The delivery node and the only sink always are."
)
_REPORT: Final = t("Deliver this node's result as soon as it settles. The end of the graph is always delivered.")
_ISOLATION: Final = t("Whether nodes work in trees of their own: `none`, one per `graph`, or one per `node`.")
_NODES: Final = t(
    "The nodes of the graph, in any order. Write them in `config`, or at the root if `config` has nothing else."
)
_CONFIG: Final = t("How long an attempt may take, and what its agent may do.")
_RETRY: Final = t("Whether and when a failed attempt is tried again by itself. A lost attempt is not a retry.")

DOCS: Final[dict[tuple[str, str], str]] = {
    ("root", "title"): t("Shown to people. Default: the name."),
    ("root", "version"): t("The format of the file; always 1."),
    ("root", "inputs"): t(
        "What the workflow asks for at the start: `{{inputs.x}}` in prompts, `$GRAPHD_VAR_x` in scripts. No secrets."
    ),
    ("root", "mode"): t("`deep` needs an `admission` record and turns review warnings into errors."),
    ("root", "admission"): t("The agreed brief that a deep run starts from."),
    ("root", "config"): t("The graph: its nodes and its limits."),
    ("root", "nodes"): _NODES,
    ("config", "name"): t("The workflow's name; the same as the file's stem."),
    ("config", "objective"): t("The end that the whole graph serves; told to every agent."),
    ("config", "nodes"): _NODES,
    ("config", "blocks"): t("A higher form that is compiled to nodes."),
    ("config", "node_defaults"): t("Taken where a node is silent."),
    ("config", "max_concurrency"): t("How many nodes of this graph may run at once, inside the daemon's own limit."),
    ("config", "max_total_nodes"): t("How many nodes the graph may have over its life."),
    ("config", "max_rounds"): t("Worker and verifier rounds in one attempt."),
    ("config", "max_replans"): t("Automatic replans of the graph."),
    ("config", "max_node_attempts"): t("Attempts of one node, retries included."),
    ("config", "max_timeout_extensions"): t("How often a deadline may be moved."),
    ("config", "budget"): t("What the graph may spend."),
    ("config", "on_required_failure"): t(
        "`drain` lets independent branches finish after a required node failed; `stop` ends them."
    ),
    ("config", "isolation"): _ISOLATION,
    ("config", "on_shared_tree"): t(
        "What happens when two graphs work in one tree: a `notice`, or one waits (`serialise`)."
    ),
    ("config", "delivery_node"): t(
        "The node whose output is the graph's result. Default: the only sink, else an index of all sinks."
    ),
    ("config", "final_check"): t("Append a last node that checks the whole."),
    ("node_defaults", "required"): _REQUIRED,
    ("node_defaults", "report_to_parent"): _REPORT,
    ("node_defaults", "worker_type"): _WORKER,
    ("node_defaults", "worker_config"): _CONFIG,
    ("node_defaults", "retry"): _RETRY,
    ("node_defaults", "isolation"): _ISOLATION,
    ("node", "id"): t(
        "The node's slug: letters, digits, `_` and `-`, at most 64. Everything else refers to it by this."
    ),
    ("node", "name"): t("A label for people. Default: the id."),
    ("node", "worker_type"): _WORKER,
    ("node", "depends_on"): _NEEDS,
    ("node", "required"): _REQUIRED,
    ("node", "approval"): t("Ask a person before the node takes a slot; refused, it fails as `refused`."),
    ("node", "on_lost"): t(
        "What happens when an attempt was lost with its machine: `resume` runs it again, `pause` asks, `fail` gives up."
    ),
    ("node", "unattended_extensions"): t("How often the deadline moves by itself while nobody is there."),
    ("node", "artifacts"): t(
        "Files that must exist and be newer than the attempt's start for the node to be achieved."
    ),
    ("node", "wait"): t("A node without a worker that settles by time or by a signal."),
    ("node", "prompt_template"): t(
        "What the worker is told: `inline` text, or the `id` of a file in `.agents/prompts/`."
    ),
    ("node", "prompt"): t(
        "Short for `prompt_template`: a text, or `{file: name}`. `{{slug}}` stands for the output of a need."
    ),
    ("node", "run"): t(
        "A script for `/bin/sh -eu`. Outputs of needs are files in `$GRAPHD_INPUT_DIR`, inputs are `$GRAPHD_VAR_x`."
    ),
    ("node", "input_mapping"): t("Which output is bound to which name. Default: each direct need under its own slug."),
    ("node", "condition"): t(
        "Decides whether the node runs, by states, verdicts and outputs of its needs; else it is skipped."
    ),
    ("node", "gate"): t("Makes the node a gate: what follows goes on only if its verdict is ACCEPT."),
    ("node", "output_schema"): t("A JSON Schema (2020-12) that the output must fit."),
    ("node", "verify"): t("Evidence that is asked for before the node counts as achieved."),
    ("node", "worker_config"): _CONFIG,
    ("node", "retry"): _RETRY,
    ("node", "report_to_parent"): _REPORT,
    ("node", "review"): t("The node's part in a review: of a design or of a diff."),
    ("node", "isolation"): _ISOLATION,
    ("node", "priority"): t("Among ready nodes a higher one takes a slot first."),
    ("node", "writes"): t("Files that the node writes; nodes that overlap are not run together."),
    ("node", "for_each"): t("Runs the prompt once per item of a list that a need put out."),
    ("block", "id"): t("The block's slug."),
    ("block", "kind"): t("What kind of work it is; decides the nodes that it is compiled to."),
    ("block", "instruction"): t("What is to be done."),
    ("block", "depends_on"): _NEEDS,
    ("block", "worker_type"): _WORKER,
    ("block", "required"): _REQUIRED,
    ("block", "report_to_parent"): _REPORT,
    ("worker_config", "timeout_ms"): t(
        "Milliseconds that an attempt may take; the clock starts when the slot is taken."
    ),
    ("worker_config", "hard_timeout_ms"): t("Milliseconds after which the attempt is ended without asking."),
    ("worker_config", "max_tool_calls"): t("How many tools an attempt may call."),
    ("worker_config", "model"): t("`advanced`, `standard`, or a model's name."),
    ("worker_config", "thinking"): t("How long the model may think."),
    ("worker_config", "mode"): t("The agent's mode."),
    ("worker_config", "permissions"): t("What the agent may do without asking: `read`, `edit` or everything (`full`)."),
    ("retry", "max"): t("Automatic retries of a failed attempt."),
    ("retry", "backoff_s"): t("Seconds before the first retry; doubled for each that follows."),
    ("retry", "on"): t("Failures that are retried. Verdicts are not, unless they are named."),
    ("prompt_template", "inline"): t("The text itself."),
    ("prompt_template", "id"): t("The name of a file in `.agents/prompts/`, without `.md`."),
    ("prompt_template", "input"): t("Values for `{{name}}` in the prompt."),
    ("prompt", "file"): t("The name of a file in `.agents/prompts/`, without `.md`."),
    ("gate", "revise"): t("The ancestor that works again when the verdict is REVISE."),
    ("gate", "max_revisions"): t("How often it may be sent back."),
    ("approval", "prompt"): t("The question that a person is asked."),
    ("approval", "default"): t("The answer where nobody answers."),
    ("verify", "run"): t("A command whose exit code is the evidence."),
    ("verify", "worker_type"): t("Who looks at the result."),
    ("verify", "criteria"): t("What has to hold."),
    ("wait", "until"): t("A time, or how long to wait."),
    ("wait", "signal"): t("The name of the signal to wait for."),
    ("wait", "timeout_s"): t("Seconds after which waiting for the signal has failed."),
    ("review", "phase"): t("What is reviewed: a `design` or a `diff`."),
    ("review", "implementation_node_id"): t("The node whose work is reviewed."),
    ("review", "verification_node_id"): t("The node that verified that work."),
    ("for_each", "in"): t("The list: `slug.output.list`."),
    ("for_each", "as"): t("The name of an item in the prompt: `{{name}}`, beside `{{index}}`."),
    ("for_each", "max"): t("The most items that are run."),
    ("budget", "tokens"): t("Tokens of all agents together."),
    ("budget", "cost_usd"): t("US dollars of all agents together."),
    ("budget", "wall_seconds"): t("Seconds of work of all nodes together."),
    ("input", "type"): t("What a value has to be. Default: `string`."),
    ("input", "description"): t("What is asked for, shown with the question."),
    ("input", "default"): t("The value where none is given."),
    ("input", "enum"): t("The values to choose from, with `type: enum`."),
    ("admission", "goal"): t("What is to be reached."),
    ("admission", "scope"): t("What belongs to it, and what does not."),
    ("admission", "constraints"): t("What has to be kept to."),
    ("admission", "assumptions"): t("What is taken for granted."),
    ("admission", "acceptance_criteria"): t("How people tell that it is done."),
    ("admission", "evidence_required"): t("What has to be shown."),
    ("admission", "risks"): t("What may go wrong."),
    ("admission", "open_questions"): t("What is not known yet, but stops nobody."),
    ("admission", "blocking_questions"): t("What has to be answered first."),
    ("admission", "verdict"): t("Whether work may start; NOT_READY can't."),
    ("admission", "waiver_reason"): t("Why work may start all the same."),
    ("admission", "acknowledged_risks"): t("Risks that were accepted."),
    ("scope", "in"): t("What belongs to it."),
    ("scope", "out"): t("What does not."),
}

WORKER_DOCS: Final[dict[str, str]] = {
    "explore": t("an agent that reads and reports"),
    "plan": t("an agent that plans the work"),
    "research": t("an agent that looks things up"),
    "architect": t("an agent that designs"),
    "review": t("an agent that reviews"),
    "verify": t("an agent that checks a result"),
    "arbiter": t("an agent that decides between opinions"),
    "build": t("an agent that changes the code"),
    "debug": t("an agent that finds the cause of a fault"),
    "prototype": t("an agent that tries something out"),
    "synthesize": t("an agent that brings results together"),
    "shell": t("runs the prompt as a script of /bin/sh"),
}


def doc_of(table: schema.Table, key: schema.Key) -> str:
    """The sentence about a key; empty where there is none."""
    return DOCS.get((table.name, key.name), key.doc)
