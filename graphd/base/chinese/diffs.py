"""Chinese: what an attempt changed (`diff`), and a session that a person takes over (`hold`)."""

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "its start": "它开始时",
    "none was kept": "没有保存",
    "there is no git tree of {when}: {trouble}": "没有{when}的 git 树：{trouble}",
    "no git tree could be taken now: {trouble}": "现在无法取得 git 树：{trouble}",
    "git can't compare its trees: {trouble}": "git 无法比较它的树：{trouble}",
    "the patch is larger than {limit} MiB": "补丁大于 {limit} MiB",
    "more than {limit} MiB are changed or new, and not ignored": "有超过 {limit} MiB 的改动或新文件，且未被忽略",
    "trees are taken where an agent works in a git work tree; graphd logs {node} shows what it did": (
        "只有代理在 git 工作树中工作时才保存树；graphd logs {node} 显示它做了什么"
    ),
    "{node} is {state}, and no session of it waits or works": "{node} 处于 {state}，没有等待或工作中的会话",
    "somebody has the session of {node} already": "已有人占用 {node} 的会话",
    "it is free when their program ends": "对方的程序结束后即可使用",
    "no program is known that opens a session of {agent}": "不知道用什么程序打开 {agent} 的会话",
    "name it in the settings, as opens of that agent": "在设置中用该代理的 opens 指定",
    "{node} has not stopped in {count} s": "{node} 在 {count} 秒内没有停止",
    "try again; graphd why {node} says what holds it up": "请重试；graphd why {node} 说明是什么拖住了它",
    "{node} is {state}: it ended before it could pause": "{node} 处于 {state}：它在暂停之前就结束了",
    "graphd why {node} says more": "graphd why {node} 有更多说明",
    "a person has its session": "有人占用它的会话",
    "another process has this session open": "另一个进程正打开着该会话",
    "it is free when that one ends": "该进程结束后即可使用",
}
