"""Gates, waits, items, reviews, contracts, blocks, admissions and pruned nodes in Chinese."""

from typing import Final

TEXTS: Final[dict[str, str]] = {
    # gates, reviews
    "{gate} can't send {node} back: it does not come before it": "{gate} 不能让 {node} 返工：{node} 不在它之前",
    "name a node that {gate} waits for": "请写 {gate} 所等待的节点",
    "{node} reads {need}, which {gate} may send back, without waiting for {gate}": (
        "{node} 读取 {need}，而 {gate} 可能让 {need} 返工，{node} 却不等待 {gate}"
    ),
    "{node} runs whatever the gate {gate} says: its condition decides alone": (
        "无论门禁 {gate} 的裁决如何，{node} 都会运行：只有它的条件起决定作用"
    ),
    'add: and {gate}.verdict == "ACCEPT"': '请加上：and {gate}.verdict == "ACCEPT"',
    "ask for ACCEPT of {gate}": "要求 {gate} 的裁决为 ACCEPT",
    "{node} reviews {other}, which does not come before it": "{node} 评审 {other}，但 {other} 不在它之前",
    "nothing waits for the verdict of the review {node}": "没有节点等待评审 {node} 的裁决",
    "make it a gate, or let a gate need it": "请把它设为门禁，或让某个门禁依赖它",
    "{node} does not say whose work it reviews": "{node} 没有说明评审谁的工作",
    "add implementation_node_id": "请添加 implementation_node_id",
    "{node} reviews {other} without reading its output": "{node} 评审 {other}，却不读取它的输出",
    "{node} reviews a diff that nobody verified": "{node} 评审的差异没有经过验证",
    "add verification_node_id": "请添加 verification_node_id",
    "{node} does not read what {other} verified": "{node} 没有读取 {other} 的验证结果",
    "{other} does not verify the work of {node}": "{other} 并不验证 {node} 的工作",
    "let {node} need {need}": "请让 {node} 依赖 {need}",
    "{node} runs even where {other} failed": "即使 {other} 失败，{node} 也会运行",
    "mark {node} as required": "请把 {node} 标为 required",
    "the verdict of {node} does not say which state it is about": "{node} 的裁决没有说明针对的是哪个状态",
    "require a fingerprint in its output_schema": "请在它的 output_schema 中要求 fingerprint",
    "a deep run that changes something needs a review": "会修改内容的 deep 运行需要评审",
    "add a node with review and gate": "请添加带有 review 和 gate 的节点",
    # waits
    "{node} waits, so nobody works on it": "{node} 只是等待，没有人执行它",
    "remove its worker and prompt": "请移除它的worker和提示词",
    "{node} waits: {keys} has no effect on it": "{node} 只是等待：{keys} 对它不起作用",
    "put it on a node of its own": "请放到单独的节点上",
    "{node} waits for either a time or a signal": "{node} 只能等待时间或信号之一",
    "write until or signal": "请写 until 或 signal",
    "{text!r} is neither a duration nor a time": "{text!r} 既不是时长也不是时间",
    "write 90s, 1h30m or 2026-12-01T09:00+01:00, with its offset or Z": (
        "请写 90s、1h30m 或 2026-12-01T09:00+01:00（带时区偏移或 Z）"
    ),
    "{text!r} is no name of a signal": "{text!r} 不是信号名",
    "1 to 128 of A-Z a-z 0-9 _ . : -, a letter or digit first": (
        "A-Z a-z 0-9 _ . : - 中的 1 到 128 个，首字符为字母或数字"
    ),
    "{node}: timeout_s bounds the waiting for a signal, in seconds above 0": (
        "{node}：timeout_s 限定等待信号的时间，须为大于 0 的秒数"
    ),
    "remove timeout_s": "请移除 timeout_s",
    # items
    "{source!r} is no list of a need": "{source!r} 不是依赖节点的列表",
    "{slug} takes its items from {need}, which it does not need": "{slug} 从 {need} 取条目，但并不依赖它",
    "an item of {slug} can't be called {name}": "{slug} 的条目不能叫 {name}",
    "a letter or _ first, and no name that the prompt binds already": "以字母或 _ 开头，且不能是提示词中已绑定的名称",
    "{slug} has a list as its output, so it can't be a gate": "{slug} 的输出是列表，所以不能是门禁",
    "put the gate into a node after it": "请把门禁放到它之后的节点",
    "the items of {slug} would have names of {count} characters": "{slug} 的条目名称将有 {count} 个字符",
    "at most 64: give it a shorter id": "最多 64 个：请用更短的 id",
    "the list that this node puts out, or a part of it": "该节点输出的列表，或其中一部分",
    # checks, globs
    "{node} is verified by either a command or a worker": "{node} 只能由命令或worker之一来验证",
    "keep one of run and worker_type": "run 和 worker_type 只保留一个",
    "{node}: nobody can verify without criteria": "{node}：没有标准就无法验证",
    "say what has to hold": "请说明必须成立的内容",
    "{node}: {count} globs; at most {limit}": "{node}：{count} 个通配模式；最多 {limit} 个",
    "name a folder instead": "请改为写文件夹",
    "{glob!r}: {reason}": "{glob!r}：{reason}",
    "write for example src/**/*.py": "例如写 src/**/*.py",
    "a glob is a line of 1 to {limit} characters": "通配模式是 1 到 {limit} 个字符的一行文本",
    "a glob is relative to the workspace, with / between folders and without ..": (
        "通配模式相对于工作区，文件夹之间用 /，不含 .."
    ),
    "{node} and {other} write the same files and may run together, so they take turns": (
        "{node} 和 {other} 写入相同的文件且可能同时运行，因此会轮流执行"
    ),
    "let one need the other, or give them other files": "请让其中一个依赖另一个，或让它们写不同的文件",
    "work trees of their own are not made yet": "尚不创建独立的工作树",
    # contracts
    "a schema of more than {limit} bytes": "模式超过 {limit} 字节",
    "leave out what nobody reads": "请去掉无人读取的部分",
    "the schema is more than {limit} levels deep": "模式超过 {limit} 层",
    "use $defs": "请使用 $defs",
    "{key} is no keyword of JSON Schema 2020-12": "{key} 不是 JSON Schema 2020-12 的关键字",
    "name it x-{key} if it is for readers": "如果只供阅读，请命名为 x-{key}",
    "{reference} is outside of this schema; nothing is fetched": "{reference} 在此模式之外；不会去获取任何内容",
    "put it under $defs and write #/$defs/name": "请放到 $defs 下并写 #/$defs/name",
    "{reference} leads nowhere in this schema": "{reference} 在此模式中没有目标",
    "write # and the way to a part of it, as in #/$defs/item": "请写 # 和到某部分的路径，如 #/$defs/item",
    "a part of a schema has no $id of its own: references would begin there": (
        "模式的一部分不能有自己的 $id：引用会从那里开始"
    ),
    "use $anchor": "请使用 $anchor",
    "{dialect} is not the dialect of 2020-12": "{dialect} 不是 2020-12 方言",
    "remove $schema": "请移除 $schema",
    "a pattern of more than {limit} characters": "正则表达式超过 {limit} 个字符",
    "split it, or check it in a node of its own": "请拆分，或在单独的节点中检查",
    "{pattern!r} is no pattern: {trouble}": "{pattern!r} 不是正则表达式：{trouble}",
    "it is a regular expression as Python reads it": "它是 Python 所理解的正则表达式",
    "{node}, outputSchema/{place}: {message}": "{node}，outputSchema/{place}：{message}",
    # blocks, admissions
    "a {kind} block has several nodes, so it can't be one script": "{kind} 块由多个节点组成，不能是一个脚本",
    "write nodes, or name an agent": "请写节点，或指定一个 agent",
    "a deep run starts from an agreed brief, and this file has none": "deep 运行从商定的简报开始，而此文件没有简报",
    "add admission, or remove mode: deep": "请添加 admission，或移除 mode: deep",
    "the goal is blank": "目标为空",
    "say what is to be reached": "请说明要达到什么",
    "the brief is NOT_READY, so the graph can't start": "简报为 NOT_READY，图不能启动",
    "answer what is open and write READY, or WAIVED with waiver_reason and acknowledged_risks": (
        "请回答未决问题后写 READY，或写 WAIVED 并附 waiver_reason 和 acknowledged_risks"
    ),
    "READY, but {count} questions have to be answered first": "写了 READY，但还有 {count} 个问题必须先回答",
    "answer them, or write WAIVED": "请回答它们，或写 WAIVED",
    "WAIVED without {key}": "写了 WAIVED 但缺少 {key}",
    # nodes given inline, pruned nodes
    "{node}: nothing binds {{{{{name}}}}}": "{node}：没有内容绑定 {{{{{name}}}}}",
    "leave it out ({where})": "请去掉它（{where}）",
    "{node} can't be pruned: it is no node of the workflow": "无法剪除 {node}：它不是此工作流的节点",
    "graphd explain shows its nodes": "graphd explain 会显示它的节点",
    "{node} is a gate, which can't be pruned": "{node} 是门禁，不能剪除",
    "leave it: its verdict decides": "请保留它：由它的裁决决定",
    "{node} is the delivery node, so it can't be pruned": "{node} 是交付节点，不能剪除",
    "name another delivery node": "请指定另一个交付节点",
    "{node} is pruned without a reason": "剪除 {node} 没有给出理由",
    "say why it is not needed": "请说明为什么不需要它",
    "{node} reads the output of what is pruned: {nodes}": "{node} 读取被剪除节点的输出：{nodes}",
    "prune {node} too, or leave it": "请一并剪除 {node}，或保留它",
}
