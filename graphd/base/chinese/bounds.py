"""Budgets, steps, deadlines, provider weather, and what keeps a node from its start, in Chinese."""

from typing import Final

KEPT: Final[dict[str, str]] = {
    # reasons that the log keeps in English
    "the budget is spent: {spent} of {limit}": "预算已用完：{spent}，上限 {limit}",
    "{amount:.0f} tokens": "{amount:.0f} 个 token",
    "{amount:.2f} USD": "{amount:.2f} 美元",
    "{amount:g} s": "{amount:g} 秒",
    "stepped {node}": "已单步执行 {node}",
    "{attempt} did not say what it used, and the graph has a budget": "{attempt} 未报告用量，而该图设有预算",
    "{agent} rests, and has for long: {why}": "{agent} 长时间处于冷却中：{why}",
    "its deadline was moved": "其截止时间已变更",
}

TEXTS: Final[dict[str, str]] = {
    **KEPT,
    # budgets
    "tokens": "token",
    "US dollars": "美元",
    "time": "时间",
    "a budget in {unit} can't be kept: the agent of {node} ({worker}) does not say what it uses": "无法执行"
    "以 {unit} 计的预算：{node} 的代理（{worker}）不报告用量",
    "bound it by wall time, or choose an agent that says what it uses; graphd agents lists them": "请改为限制运行时间，"
    "或选择会报告用量的代理；graphd agents 会列出它们",
    "a budget names at least one amount, and each is more than nothing": "预算至少要给出一项额度，且每项都必须大于零",
    "tokens, costUsd or wallSeconds": "tokens、costUsd 或 wallSeconds",
    "its budget is spent: {spent} of {limit}": "其预算已用完：{spent}，上限 {limit}",
    "graphd resume --top-up {example}": "graphd resume --top-up {example}",
    "{graph} has no budget in {unit}": "{graph} 没有以 {unit} 计的预算",
    "top up what bounds it; graphd status shows its budget": "请追加实际限制它的额度；graphd status 会显示其预算",
    # the step
    "{names} runs": "{names} 正在运行",
    "graphd pause, and step when it has ended": "先 graphd pause，待其结束后再单步执行",
    "no node is ready": "没有就绪的节点",
    "graphd why names what each waits for": "graphd why 会说明各节点在等什么",
    "{node} is {state}, not ready": "{node} 处于 {state}，尚未就绪",
    # deadlines
    "can't extend the time of {node}: it is {state}": "无法延长 {node} 的时间：它处于 {state}",
    "only a node that works has a deadline to move; graphd why {node} says where it is": "只有正在工作的节点"
    "才有可变更的截止时间；graphd why {node} 会说明它的状况",
    "{node} may work for {limit} s at most": "{node} 最多可工作 {limit} 秒",
    "its hard_timeout_ms says so; a retry begins anew": "这是它的 hard_timeout_ms 规定的；重试会重新计时",
    "the time of {node} was extended {count} times, which is the most": "{node} 的时间已延长 {count} 次，达到上限",
    "max_timeout_extensions says so; a retry begins anew": "这是 max_timeout_extensions 规定的；重试会重新计时",
    # what keeps a node
    "gate {gate} asks for a new plan: replan, or resume to go on with this one": "关卡 {gate} 要求新的计划："
    "请重新规划，或恢复以按此计划继续",
    "it waits for an answer: {title}": "它在等待答复：{title}",
    "it is tried again in {count} s": "{count} 秒后重试",
    "only {node} may start: it is stepped": "只有 {node} 可以启动：正在单步执行",
    "{node} writes the same files: one goes after the other": "{node} 写入相同的文件：需一个接一个地运行",
    "the graph that it replaces still has processes": "被它取代的图仍有进程",
    "no installed agent serves worker {worker}": "没有已安装的代理可服务工作者 {worker}",
    "all slots of its agent are taken": "其代理的所有槽位都已占用",
    "its agent has no room in the memory yet": "内存暂时容不下其代理",
    "agents are started one after the other": "代理需逐个启动",
    "what runs may use up the budget: the next one starts when that is known": "正在运行的部分可能用完预算："
    "待其用量明确后再启动下一个",
    "{agent} rests for {count} s: {reason}": "{agent} 冷却 {count} 秒：{reason}",
    "then its condition decides: {condition}": "之后由其条件决定：{condition}",
    "its result is checked": "正在检验其结果",
    "it waits for the signal {name}": "它在等待信号 {name}",
    "it waits until {until}": "它等待至 {until}",
    "its item {node} is {state}": "其条目 {node} 处于 {state}",
    "{by} paused the graph: {reason}": "{by} 暂停了该图：{reason}",
}
