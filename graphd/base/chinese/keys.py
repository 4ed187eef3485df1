"""The keys of the live tree in Chinese (`graphd run`, `graphd watch`)."""

from typing import Final

TEXTS: Final[dict[str, str]] = {
    # what a key is called
    "open": "展开",
    "close": "收起",
    "output": "输出",
    "stop output": "停止输出",
    "why": "原因",
    "pause": "暂停",
    "resume": "继续",
    "step": "单步",
    "retry": "重试",
    "cancel": "取消",
    "accept": "接受",
    "dismiss": "拒绝",
    "diff": "改动",
    "retry all": "全部重试",
    "finish": "收工",
    "leave": "离开",
    "detach": "脱离",
    "all keys": "全部按键",
    # why it does nothing now
    "{key}: {reason}": "{key}：{reason}",
    "no node is selected": "没有选中节点",
    "{verb} is under way": "{verb} 正在进行",
    "{verb} is not for a graph that is {status}": "图处于 {status} 时不能 {verb}",
    "its budget is spent: graphd resume {graph} --top-up 200k": "预算已用完：graphd resume {graph} --top-up 200k",
    "it is blocked: try again what failed": "它被阻塞：请重试失败的节点",
    "{node} has not run yet": "{node} 还没有运行过",
    "{node} is no agent's, and only what agents change is kept": "{node} 不由 agent 完成，而只保存 agent 的改动",
    "{node} is {state}; what failed, or never came to run, can be tried again": (
        "{node} 处于 {state}；只有失败或未能运行的才能重试"
    ),
    "nothing failed, and nothing is blocked": "没有失败，也没有阻塞",
    "nothing is proposed": "没有提议",
    "what is pasted is no command; type it": "粘贴的内容不是命令；请键入",
    # questions
    "cancel stops all of it for good; sure?": "取消会彻底停止全部工作；确定吗？",
    "y: yes   any other key: no": "y：是   其他键：否",
    "it is enough because (Enter sends, Esc drops it):": "已经足够，因为（Enter 发送，Esc 放弃）：",
    "accept what {author} proposes ({reason}; {count} nodes)?": "接受 {author} 的提议（{reason}；{count} 个节点）？",
    # what came of it
    "{verb} asked for": "已请求 {verb}",
    "… {count} more lines:": "… 还有 {count} 行：",
    "… some is left out:": "… 略去了一部分：",
    "{node}: its output has ended": "{node}：输出已结束",
    # an open node
    "attempt {number}": "第 {number} 次尝试",
    "… {size} in all": "… 共 {size}",
}
