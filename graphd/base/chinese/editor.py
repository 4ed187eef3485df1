"""What editors show, in Chinese: completion, hover, rename, commands, progress and drawings."""

from typing import Final

LANGUAGE: Final[dict[str, str]] = {
    "{meaning}; default {default}": "{meaning}；默认为 {default}",
    "{meaning}; short for {key}": "{meaning}；{key} 的简写",
    "a value of this prompt": "此 prompt 的值",
    "an input of the workflow": "工作流的输入",
    "mapped in input_mapping": "在 input_mapping 中映射",
    "the output of {slug}": "{slug} 的输出",
    "the item": "列表项",
    "the place of the item": "列表项的位置",
    "a new entry": "新的一项",
    "the folder with the outputs of the needs": "存放依赖输出的文件夹",
    "the whole output": "完整的输出",
    "the output, or a part of it": "输出，或其中一部分",
    "at most {seconds} s an attempt": "每次尝试最多 {seconds} 秒",
    "{key}: {meaning}": "{key}：{meaning}",
    "input **{name}**: {type}": "输入 **{name}**：{type}",
    "**{name}**, a name that this node binds for its prompt": "**{name}**，此节点为其 prompt 提供的名字",
    "needs {needs}": "依赖 {needs}",
    "read by {nodes}": "被 {nodes} 读取",
    "read by {nodes} and {count} more": "被 {nodes} 以及另外 {count} 个节点读取",
    "runs if {condition}": "当 {condition} 时运行",
    "required: the graph is blocked if it fails": "必需：它失败会阻塞整个图",
    "retried up to {count} times after {classes}": "遇到 {classes} 时最多重试 {count} 次",
    "default: {value}": "默认值：{value}",
    "has to be there": "必须写明",
    "This version does not carry it out: {why}": "此版本不会执行它：{why}",
    "worker: {worker}": "worker：{worker}",
    "worker: {worker} ({about})": "worker：{worker}（{about}）",
}

RENAMING: Final[dict[str, str]] = {
    "a letter or _ first, then letters, digits and _": "以字母或 _ 开头，其后为字母、数字和 _",
    "renaming {old} to {name} would change more than the name": "把 {old} 重命名为 {name} 会改动名字以外的内容",
    "choose another name, or first write plainly where it is used in escaped or folded text": (
        "请换一个名字，或先把用到它的转义或折叠文本改写成普通写法"
    ),
    "choose another name": "请换一个名字",
    "nothing here has a name": "此处没有可命名的内容",
    "put the cursor on an id, or where one is used": "请把光标放在 id 上，或放在用到它的位置",
    "the file is no YAML at the moment": "文件目前不是有效的 YAML",
    "mend the syntax first": "请先修正语法",
    "{name} can't be a name here": "{name} 不能用作此处的名字",
    "{name} can't be an id": "{name} 不能用作 id",
    "{name} is defined nowhere in this file": "此文件中没有定义 {name}",
    "define it first": "请先定义它",
    "{name} is already there": "{name} 已经存在",
    "{name} already means something else in a prompt that uses {old}": (
        "在用到 {old} 的某个 prompt 中，{name} 已有别的含义"
    ),
    "the prompt file of {node} uses {{{{{name}}}}}": "{node} 的 prompt 文件用到了 {{{{{name}}}}}",
    "map it first: input_mapping: {{ {name}: {name} }} on {node}": (
        "请先映射它：在 {node} 上写 input_mapping: {{ {name}: {name} }}"
    ),
    "{name} is defined more than once": "{name} 有多处定义",
    "give each its own name first": "请先给每一处各自的名字",
}

LIVE: Final[dict[str, str]] = {
    "{node} needs {need}": "{node} 依赖 {need}",
    "{node} failed: {reason}": "{node} 失败：{reason}",
    "now: {state}": "现在：{state}",
    "failed: {reason}": "失败：{reason}",
    "blocked by {node}": "被 {node} 阻塞",
    "last line: {line}": "最后一行：{line}",
}

QUICK_FIXES: Final[dict[str, str]] = {
    "write {key} for {written}": "把 {written} 写成 {key}",
    "write {name} for {written}": "把 {written} 写成 {name}",
    "{name} is here first": "{name} 首次出现在此处",
    "write max_total_nodes: {count}": "写 max_total_nodes: {count}",
    "remove {name} from the needs": "将 {name} 从依赖中移除",
    "add {name} to the needs": "将 {name} 加入依赖",
    "break this cycle: {node} no longer needs {need}": "打破此环：{node} 不再依赖 {need}",
    "call it {name}": "改名为 {name}",
    "add the node {name}": "添加节点 {name}",
    "add a node": "添加一个节点",
    "declare the input {name}": "声明输入 {name}",
    "{name} is required": "把 {name} 标为必需",
    "remove {key}": "移除 {key}",
    "remove the second {key}": "移除第二个 {key}",
    "remove {mark}": "移除 {mark}",
    "remove the character": "移除该字符",
    "remove the line": "移除该行",
    "add id: {slug}": "添加 id: {slug}",
    "add a script with run": "用 run 添加脚本",
    "add a worker and a prompt": "添加 worker 和 prompt",
    "add a prompt": "添加 prompt",
    "add choices": "添加可选值",
    "write type: enum": "写 type: enum",
    "add worker: {worker}": "添加 worker: {worker}",
    "put {text} in quotes": "给 {text} 加引号",
    "put the text in quotes": "给文本加引号",
    "put the key in quotes": "给键加引号",
    "start with one node": "从一个节点开始",
    "put a space after the colon": "在冒号后加空格",
    "put a colon after {key}": "在 {key} 后加冒号",
    "close the bracket with {closers}": "用 {closers} 补全括号",
    "close the quote": "补全引号",
}

COMMANDS: Final[dict[str, str]] = {
    "Run": "运行",
    "Pause": "暂停",
    "Resume": "继续",
    "Cancel": "取消",
    "Retry": "重试",
    "Retry what failed": "重试失败的节点",
    "Apply to the running graph": "应用到正在运行的图",
    "Open output": "打开输出",
    "this text is in no file yet": "此文本尚未保存为文件",
    "save it first": "请先保存",
    "{name} has changes that are not saved": "{name} 有未保存的更改",
    "nothing runs from this file": "没有由此文件启动的运行",
    "graphd.run starts it": "graphd.run 可启动它",
    "this graph did not come from a file": "此图并非来自文件",
    "name a file by its uri": "请用 uri 指定文件",
    "unknown command": "未知的命令",
    "a command": "命令",
    "a node": "节点",
    "must be one object": "必须是一个对象",
    "uri, graph or node": "uri、graph 或 node",
    "what LSP says": "LSP 所规定的内容",
    "other": "其他",
}

DRAWINGS: Final[dict[str, str]] = {
    "{done} of {total}": "{done} / {total}",
    "{done} of {total}: {names}": "{done} / {total}：{names}",
    "{status}, {settled} of {all}": "{status}，{settled} / {all}",
    "{status}, {settled} of {all}, {failed} failed": "{status}，{settled} / {all}，{failed} 个失败",
    "{verb} is under way: {text}": "{verb} 正在进行：{text}",
    "and {count} more": "以及另外 {count} 个",
    "{failure}: {reason}": "{failure}：{reason}",
    "behind {node}": "在 {node} 之后",
    "needs {names}": "依赖 {names}",
}

TEXTS: Final[dict[str, str]] = {**LANGUAGE, **RENAMING, **LIVE, **QUICK_FIXES, **COMMANDS, **DRAWINGS}
