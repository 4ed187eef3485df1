"""What every key of a workflow file is for, in Chinese (`graphd.workflows.explanations`)."""

from typing import Final

KEYS: Final[dict[str, str]] = {
    "Who does the node: `shell` runs the prompt as a script, the others are agents.": (
        "由谁来做此节点：`shell` 把 prompt 作为脚本运行，其余都是 agent。"
    ),
    "Nodes whose output this one reads; it starts when all of them have settled.": (
        "此节点读取哪些节点的输出；它们全部了结后此节点才启动。"
    ),
    "Whether the graph is blocked when this node fails. The delivery node and the only sink always are.": (
        "此节点失败时是否阻塞整个图。交付节点和唯一的末端总是如此。"
    ),
    "Deliver this node's result as soon as it settles. The end of the graph is always delivered.": (
        "此节点一了结就交付其结果。图的结束总会交付。"
    ),
    "Whether nodes work in trees of their own: `none`, one per `graph`, or one per `node`.": (
        "节点是否在各自的 work tree 中工作：`none` 为否，`graph` 为每图一个，`node` 为每节点一个。"
    ),
    "The nodes of the graph, in any order. Write them in `config`, or at the root if `config` has nothing else.": (
        "图的各节点，顺序不限。写在 `config` 中；若 `config` 没有其他内容，也可写在最外层。"
    ),
    "How long an attempt may take, and what its agent may do.": "一次尝试可用多长时间，其 agent 可以做什么。",
    "Whether and when a failed attempt is tried again by itself. A lost attempt is not a retry.": (
        "失败的尝试是否以及何时自动重试。丢失的尝试不算重试。"
    ),
    "Shown to people. Default: the name.": "显示给人看。默认为名字。",
    "The format of the file; always 1.": "文件的格式；总是 1。",
    "What the workflow asks for at the start: `{{inputs.x}}` in prompts, `$GRAPHD_VAR_x` in scripts. No secrets.": (
        "工作流在启动时要求的内容：prompt 中写 `{{inputs.x}}`，脚本中写 `$GRAPHD_VAR_x`。请勿放机密。"
    ),
    "`deep` needs an `admission` record and turns review warnings into errors.": (
        "`deep` 需要 `admission` 记录，并把评审警告变成错误。"
    ),
    "The agreed brief that a deep run starts from.": "deep 运行所依据的商定简报。",
    "The graph: its nodes and its limits.": "图：它的节点与限制。",
    "The workflow's name; the same as the file's stem.": "工作流的名字；与不带扩展名的文件名相同。",
    "The end that the whole graph serves; told to every agent.": "整个图所服务的目标；会告知每个 agent。",
    "A higher form that is compiled to nodes.": "更高层的写法，会编译成节点。",
    "Taken where a node is silent.": "节点没有写明时采用。",
    "How many nodes of this graph may run at once, inside the daemon's own limit.": (
        "此图可同时运行多少个节点，不超过守护进程自身的限制。"
    ),
    "How many nodes the graph may have over its life.": "图在整个生命周期中最多可有多少个节点。",
    "Worker and verifier rounds in one attempt.": "一次尝试中 worker 与验证者的轮数。",
    "Automatic replans of the graph.": "图的自动重新规划次数。",
    "Attempts of one node, retries included.": "一个节点的尝试次数，包括重试。",
    "How often a deadline may be moved.": "期限可以推迟多少次。",
    "What the graph may spend.": "图可以花费多少。",
    "`drain` lets independent branches finish after a required node failed; `stop` ends them.": (
        "必需节点失败后，`drain` 让相互独立的分支运行完毕；`stop` 则终止它们。"
    ),
    "What happens when two graphs work in one tree: a `notice`, or one waits (`serialise`).": (
        "两个图在同一棵树中工作时怎么办：给出提示（`notice`），或让其中一个等待（`serialise`）。"
    ),
    "The node whose output is the graph's result. Default: the only sink, else an index of all sinks.": (
        "其输出即为图的结果的节点。默认为唯一的末端，否则为所有末端的索引。"
    ),
    "Append a last node that checks the whole.": "在最后追加一个检查全部内容的节点。",
    "The node's slug: letters, digits, `_` and `-`, at most 64. Everything else refers to it by this.": (
        "节点的 slug：字母、数字、`_` 和 `-`，最多 64 个。其他各处都以此引用它。"
    ),
    "A label for people. Default: the id.": "给人看的标签。默认为 id。",
    "Ask a person before the node takes a slot; refused, it fails as `refused`.": (
        "在节点占用名额之前询问人；若被拒绝，则以 `refused` 失败。"
    ),
    "What happens when an attempt was lost with its machine: `resume` runs it again, `pause` asks, `fail` gives up.": (
        "尝试随机器一起丢失时怎么办：`resume` 再次运行，`pause` 询问，`fail` 放弃。"
    ),
    "How often the deadline moves by itself while nobody is there.": "无人在场时期限自动推迟多少次。",
    "Files that must exist and be newer than the attempt's start for the node to be achieved.": (
        "节点要达成，这些文件必须存在，且比尝试的开始时间更新。"
    ),
    "A node without a worker that settles by time or by a signal.": "没有 worker 的节点，由时间或信号来了结。",
    "What the worker is told: `inline` text, or the `id` of a file in `.agents/prompts/`.": (
        "告诉 worker 的内容：`inline` 文本，或 `.agents/prompts/` 中某个文件的 `id`。"
    ),
    "Short for `prompt_template`: a text, or `{file: name}`. `{{slug}}` stands for the output of a need.": (
        "`prompt_template` 的简写：文本，或 `{file: name}`。`{{slug}}` 代表某个依赖的输出。"
    ),
    "A script for `/bin/sh -eu`. Outputs of needs are files in `$GRAPHD_INPUT_DIR`, inputs are `$GRAPHD_VAR_x`.": (
        "供 `/bin/sh -eu` 执行的脚本。依赖的输出是 `$GRAPHD_INPUT_DIR` 中的文件，输入是 `$GRAPHD_VAR_x`。"
    ),
    "Which output is bound to which name. Default: each direct need under its own slug.": (
        "哪个输出对应哪个名字。默认每个直接依赖以其 slug 为名。"
    ),
    "Decides whether the node runs, by states, verdicts and outputs of its needs; else it is skipped.": (
        "根据依赖的状态、裁决和输出决定节点是否运行；否则跳过。"
    ),
    "Makes the node a gate: what follows goes on only if its verdict is ACCEPT.": (
        "使节点成为门禁：只有其裁决为 ACCEPT，后续才会继续。"
    ),
    "A JSON Schema (2020-12) that the output must fit.": "输出必须符合的 JSON Schema（2020-12）。",
    "Evidence that is asked for before the node counts as achieved.": "节点算作达成之前要求的凭证。",
    "The node's part in a review: of a design or of a diff.": "节点在评审中的角色：评审设计或 diff。",
    "Among ready nodes a higher one takes a slot first.": "在就绪的节点中，数值较高的先占用名额。",
    "Files that the node writes; nodes that overlap are not run together.": (
        "节点写入的文件；有重叠的节点不会同时运行。"
    ),
    "Runs the prompt once per item of a list that a need put out.": "对依赖输出的列表中的每一项运行一次 prompt。",
    "The block's slug.": "block 的 slug。",
    "What kind of work it is; decides the nodes that it is compiled to.": "是哪一类工作；决定它会编译成哪些节点。",
    "What is to be done.": "要做什么。",
    "Milliseconds that an attempt may take; the clock starts when the slot is taken.": (
        "一次尝试可用的毫秒数；从占用名额时开始计时。"
    ),
    "Milliseconds after which the attempt is ended without asking.": "超过这么多毫秒后不经询问即结束尝试。",
    "How many tools an attempt may call.": "一次尝试可以调用多少次工具。",
    "`advanced`, `standard`, or a model's name.": "`advanced`、`standard`，或某个模型的名字。",
    "How long the model may think.": "模型可以思考多久。",
    "The agent's mode.": "agent 的模式。",
    "What the agent may do without asking: `read`, `edit` or everything (`full`).": (
        "agent 不经询问可以做什么：`read`、`edit` 或一切（`full`）。"
    ),
    "Automatic retries of a failed attempt.": "失败的尝试自动重试的次数。",
    "Seconds before the first retry; doubled for each that follows.": "首次重试前的秒数；其后每次加倍。",
    "Failures that are retried. Verdicts are not, unless they are named.": "哪些失败会重试。裁决不会，除非写明。",
    "The text itself.": "文本本身。",
    "The name of a file in `.agents/prompts/`, without `.md`.": "`.agents/prompts/` 中某个文件的名字，不带 `.md`。",
    "Values for `{{name}}` in the prompt.": "prompt 中 `{{name}}` 的值。",
    "The ancestor that works again when the verdict is REVISE.": "裁决为 REVISE 时重新工作的上游节点。",
    "How often it may be sent back.": "最多可以退回多少次。",
    "The question that a person is asked.": "向人提出的问题。",
    "The answer where nobody answers.": "无人回答时采用的回答。",
    "A command whose exit code is the evidence.": "以其退出码为凭证的命令。",
    "Who looks at the result.": "由谁来查看结果。",
    "What has to hold.": "必须成立的条件。",
    "A time, or how long to wait.": "时间点，或等待的时长。",
    "The name of the signal to wait for.": "所等待的信号的名字。",
    "Seconds after which waiting for the signal has failed.": "等待信号超过这么多秒即为失败。",
    "What is reviewed: a `design` or a `diff`.": "评审的对象：`design` 或 `diff`。",
    "The node whose work is reviewed.": "其工作受到评审的节点。",
    "The node that verified that work.": "验证过该工作的节点。",
    "The list: `slug.output.list`.": "列表：`slug.output.list`。",
    "The name of an item in the prompt: `{{name}}`, beside `{{index}}`.": (
        "列表项在 prompt 中的名字：`{{name}}`，另有 `{{index}}`。"
    ),
    "The most items that are run.": "最多运行多少项。",
    "Tokens of all agents together.": "所有 agent 合计的 token 数。",
    "US dollars of all agents together.": "所有 agent 合计的美元数。",
    "Seconds of work of all nodes together.": "所有节点合计的工作秒数。",
    "What a value has to be. Default: `string`.": "值的类型。默认为 `string`。",
    "What is asked for, shown with the question.": "要求的内容，与问题一同显示。",
    "The value where none is given.": "没有给出时采用的值。",
    "The values to choose from, with `type: enum`.": "与 `type: enum` 一起使用的可选值。",
    "What is to be reached.": "要达到的目标。",
    "What belongs to it, and what does not.": "什么属于它，什么不属于它。",
    "What has to be kept to.": "必须遵守的约束。",
    "What is taken for granted.": "视为前提的假设。",
    "How people tell that it is done.": "人们如何判断它已完成。",
    "What has to be shown.": "必须出示的凭证。",
    "What may go wrong.": "可能出错的地方。",
    "What is not known yet, but stops nobody.": "尚不清楚、但不妨碍工作的问题。",
    "What has to be answered first.": "必须先回答的问题。",
    "Whether work may start; NOT_READY can't.": "工作是否可以开始；NOT_READY 不可以。",
    "Why work may start all the same.": "为何仍可开始工作。",
    "Risks that were accepted.": "已接受的风险。",
    "What belongs to it.": "属于它的内容。",
    "What does not.": "不属于它的内容。",
}

WORKERS: Final[dict[str, str]] = {
    "an agent that reads and reports": "负责阅读并报告的 agent",
    "an agent that plans the work": "负责规划工作的 agent",
    "an agent that looks things up": "负责查阅资料的 agent",
    "an agent that designs": "负责设计的 agent",
    "an agent that reviews": "负责评审的 agent",
    "an agent that checks a result": "负责检查结果的 agent",
    "an agent that decides between opinions": "负责在不同意见间裁决的 agent",
    "an agent that changes the code": "负责修改代码的 agent",
    "an agent that finds the cause of a fault": "负责查找故障原因的 agent",
    "an agent that tries something out": "负责试验的 agent",
    "an agent that brings results together": "负责汇总结果的 agent",
    "runs the prompt as a script of /bin/sh": "把 prompt 作为 /bin/sh 的脚本运行",
}

TEXTS: Final[dict[str, str]] = {**KEYS, **WORKERS}
