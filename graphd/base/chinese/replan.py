"""Edits of a plan, proposals and applied files in Chinese. REASONS are what the log keeps of them."""

from typing import Final

REASONS: Final[dict[str, str]] = {
    "cancelled by a replan": "因重新规划而取消",
    "the node starts anew": "节点重新开始",
    "the node was cancelled": "节点已取消",
    "the graph ended": "图已结束",
    "no longer in the file": "文件中已没有它",
    "{file} was changed": "{file} 已修改",
}
TEXTS: Final[dict[str, str]] = REASONS | {
    "nothing to change": "没有要改的内容",
    "name nodes to add, change or remove": "请指出要添加、修改或移除的节点",
    "its list was made already; graphd rerun starts all of it anew": "其列表已经生成；graphd rerun 会全部重新开始",
    "it is finishing": "它正在收尾",
    "let it end; graphd rerun runs its plan again": "请让它结束；graphd rerun 会再次运行其计划",
    "graphd extend adds to it; graphd rerun runs its plan again":
        "graphd extend 可向其添加节点；graphd rerun 会再次运行其计划",
    "its budget is spent": "其预算已用完",
    "graphd resume --top-up goes on": "graphd resume --top-up 可继续",
    "a gate stays a gate, and required": "关卡节点必须仍是关卡，且为必需",
    "a gate stays: change what it asks for": "关卡节点不能去掉：可以修改它的要求",
    "a removed node stays removed; add one under another id": "已移除的节点不能恢复；请用别的 id 添加一个",
    "add a node under the new name, and remove this one": "请用新名称添加一个节点，并移除这一个",
    "can't edit {node}: it is {state}": "不能修改 {node}：其状态为 {state}",
    "can't restart {node}: it had {count} of {limit} attempts":
        "不能重新开始 {node}：已用 {count} 次尝试，上限 {limit} 次",
    "can't retry {node}: it was removed from the plan": "不能重试 {node}：它已从计划中移除",
    "change the needs of {node}, or remove it too": "请修改 {node} 的依赖，或把它一并移除",
    "ids are never used again; choose another one": "id 不会再次使用；请另选一个",
    "it is at rest already, and costs nothing": "它已经结束，不再有任何开销",
    "restart it in the same replan: graphd replan --restart {node}":
        "请在同一次重新规划中让它重新开始：graphd replan --restart {node}",
    "run the rest as another graph": "请把其余部分作为另一个图运行",
    "use the keys of a node": "请使用节点的键",
    "{count} nodes over its life; this graph may have {limit}": "累计 {count} 个节点；此图最多 {limit} 个",
    "{node} can't be changed like this: {trouble}": "{node} 不能这样修改：{trouble}",
    "{node} is edited in two ways that exclude each other": "对 {node} 的两处修改互相矛盾",
    "{node} names a node that this graph has or had": "{node} 是此图现有或曾有的节点名",
    "{node} needs {need}, which is removed or cancelled": "{node} 依赖 {need}，而后者已移除或取消",
    "{node} was removed in plan version {version}": "{node} 已在计划版本 {version} 中移除",
    "a person may still replan it": "人仍可重新规划它",
    "{graph} had {limit} automatic replans": "{graph} 已自动重新规划 {limit} 次",
    "{graph} has no proposal {proposal}": "{graph} 没有提议 {proposal}",
    "no graph has proposal {proposal}": "没有哪个图有提议 {proposal}",
    "graphd status lists what is proposed": "graphd status 会列出提议",
    "proposal {proposal} is settled already, by {by}": "提议 {proposal} 已有结论，由 {by} 作出",
    "graphd history says how": "graphd history 会说明经过",
    "proposal {proposal} is stale: {node} changed since": "提议 {proposal} 已过时：{node} 此后有变化",
    "graphd dismiss {proposal}; then propose it anew": "graphd dismiss {proposal}；然后重新提议",
    "{file} is there already": "{file} 已存在",
    "{file} can't be written: {trouble}": "无法写入 {file}：{trouble}",
    "make its folder writable; graphd save --dry-run prints the file": (
        "请让其文件夹可写；graphd save --dry-run 会打印该文件"
    ),
    "another name, or graphd save --force": "请换个名称，或使用 graphd save --force",
    "no graph was started from {file}": "没有由 {file} 启动的图",
    "graphd run {file} starts one; --graph names another": "graphd run {file} 可启动一个；--graph 可指定别的图",
}  # fmt: skip
