"""Gates, items, waits, approvals and contracts in Chinese: reasons that the log keeps in English, matched back."""

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "declared and not made by this attempt: {globs}": "已声明但本次尝试没有生成：{globs}",
    "its result breaks output_schema at {path}: {message}": "其结果在 {path} 处不符合 output_schema：{message}",
    "its result is no JSON value, which output_schema asks for": "其结果不是 output_schema 要求的 JSON 值",
    "its output_schema can't be used: {trouble}": "其 output_schema 无法使用：{trouble}",
    "no signal {name} came in {seconds:g} s": "在 {seconds:g} 秒内没有收到信号 {name}",
    "{by} refused it: {said}": "{by} 拒绝了：{said}",
    "{by} refused it": "{by} 拒绝了",
    "a gate's verdict is one of {known}, not {found}": "关卡的裁决是 {known} 之一，而不是 {found}",
    "it names nothing to revise": "它没有指明要返工什么",
    "the work was sent back {count} times": "该工作已被退回 {count} 次",
    "the graph is being finished": "该图正在收尾",
    "gate {gate} asks for a new plan": "关卡 {gate} 要求新的计划",
    "a gate's output has a verdict, one of {known}; there is none": "关卡的输出须有裁决，为 {known} 之一；此处没有",
    "a gate's output is a JSON object with a verdict; there is no output": (
        "关卡的输出须是带有裁决的 JSON 对象；此处没有输出"
    ),
    "a gate's output is a JSON object of at most 64 KiB; it is longer": (
        "关卡的输出须是不超过 64 KiB 的 JSON 对象；它更长"
    ),
    "a gate's output is a JSON object with a verdict; it is another JSON value": (
        "关卡的输出须是带有裁决的 JSON 对象；它是另一种 JSON 值"
    ),
    "a gate's output is a JSON object with a verdict; it is not JSON": (
        "关卡的输出须是带有裁决的 JSON 对象；它不是 JSON"
    ),
    "{node} had {count} of {limit} attempts": "{node} 已用 {count} 次尝试，上限 {limit}",
    "{source}: the output of {node} is longer than 64 KiB": "{source}：{node} 的输出超过 64 KiB",
    "{source}: {node} has no output": "{source}：{node} 没有输出",
    "{source}: the output of {node} is not JSON": "{source}：{node} 的输出不是 JSON",
    "{source} is no list": "{source} 不是列表",
    "{source} has {count} items; at most {limit}": "{source} 有 {count} 项，最多 {limit} 项",
    "{count} more nodes than the {limit} that the graph may have": "比该图可有的 {limit} 个节点多出 {count} 个",
    "{count} of {all} items were not achieved; {node}: {reason}": "{all} 项中有 {count} 项未达成；{node}：{reason}",
    "removed: its list has only {count} items": "已移除：其列表只有 {count} 项",
    "{node} is not about to start any more": "{node} 不再准备启动",
    "{node} is an item of {maker}, which makes none": "{node} 是 {maker} 的一项，而 {maker} 不生成任何项",
    "export it again": "请重新导出",
    "can't retry {node}: {maker} is {state} without it": "无法重试 {node}：{maker} 没有它也已是 {state}",
    "gate {gate} has not decided": "关卡 {gate} 还没有裁决",
    "graphd why {gate} shows what it waits for; graphd cancel ends the graph without it": (
        "graphd why {gate} 显示它在等什么；graphd cancel 不等它而结束该图"
    ),
    "the payload has {count} bytes; at most {limit}": "载荷有 {count} 字节，最多 {limit} 字节",
    "at most 64 KiB": "最多 64 KiB",
}
