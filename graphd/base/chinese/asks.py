"""Questions to people in Chinese (`graphd.core.asks`)."""

from typing import Final

KEPT: Final[dict[str, str]] = {
    # titles and options of our own questions, which the log keeps in English
    "{node}: its agent cancelled the turn by itself": "{node}：其代理自行取消了本轮",
    "{node} has worked for {time} s; extend its time, or stop it?": "{node} 已工作 {time} 秒；延长时间，还是停止？",
    "Start {node}?": "启动 {node}？",
    "Extend": "延长",
    "Stop": "停止",
    "Approve": "批准",
    "Refuse": "拒绝",
    "Accept": "接受",
    "Dismiss": "驳回",
    "Continue": "继续",
    "Try again": "重试",
    "Let it fail": "让它失败",
}

TEXTS: Final[dict[str, str]] = {
    **KEPT,
    "no ask {ask}": "没有询问 {ask}",
    "graphd ask lists what waits": "graphd ask 会列出等待答复的询问",
    "nobody: it was withdrawn": "无人：它已被撤回",
    "{ask} needs no answer any more; answered by {by}": "{ask} 已不需要答复；答复者：{by}",
    "{ask} is about another action than the one that was shown": "{ask} 所指的操作与所显示的不同",
    "read the ask again, then decide anew": "请重新阅读该询问，再作决定",
    "{ask} has no option {option}": "{ask} 没有选项 {option}",
    "one of: {options}": "可选：{options}",
    "{ask} needs one of its options": "{ask} 需要选择其中一个选项",
    "{ask} can't be answered for the scope {scope}": "{ask} 不能以范围 {scope} 答复",
    "{count} asks begin with {reference}": "有 {count} 个询问以 {reference} 开头",
    "{ask} is no standing answer": "{ask} 不是长期有效的答复",
    "graphd ask --scopes lists them": "graphd ask --scopes 会列出它们",
    "rule {rule}": "规则 {rule}",
    "its end": "其结束",
    "the answer to {ask}, which reached nobody": "对 {ask} 的答复，此前未送达任何人",
}
