"""What children say and are told, in Chinese (`graphd.server.methods.child` and around it)."""

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "only an attempt may call {method}": "只有尝试才能调用 {method}",
    "its child does": "由其子进程调用",
    "this attempt is over": "此尝试已结束",
    "what it still says is dropped": "其后续内容将被丢弃",
    "a result has at most {limit} bytes, not {size}": "结果最多 {limit} 字节，而不是 {size}",
    "write it to a file, and hand in where it is": "请写入文件，并提交其位置",
    "no turn of this attempt is running: its result is settled": "此尝试没有正在运行的轮次：其结果已定",
    "it is no JSON": "不是 JSON",
    "the result does not fit its JSON Schema: {trouble}": "结果不符合其 JSON Schema：{trouble}",
    "mend it, and hand it in again": "请修正后重新提交",
    "this attempt has no inputs": "此尝试没有输入",
    "no input {name}": "没有输入 {name}",
    "{node} asks: {what}": "{node} 询问：{what}",
    "{question}\nanswer with a code action here, or: graphd answer {ask}": (
        "{question}\n在此用代码操作答复，或运行：graphd answer {ask}"
    ),
    '{question}\nanswer it with: graphd answer {ask} --text "…"': (
        '{question}\n请用 graphd answer {ask} --text "…" 答复'
    ),
    "{answer}: {what}": "{answer}：{what}",
    "{answer} for this attempt ({covers}): {what}": "对此次尝试{answer}（{covers}）：{what}",
    "{answer} for the graph ({covers}): {what}": "对整个图{answer}（{covers}）：{what}",
    "handed in its result ({size} bytes)": "已提交结果（{size} 字节）",
}
