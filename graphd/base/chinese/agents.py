"""Agents: profiles, who serves a worker, how their turns end, their settings, and what the doctor says of them."""

from typing import Final

STORED: Final[dict[str, str]] = {
    "the worker {worker} needs an agent, and none was found on PATH={path} of {whose}; install {install}": (
        "worker {worker} 需要 agent，但在 {whose} 的 PATH={path} 上没有找到；请安装 {install}"
    ),
    "the worker {worker} is served by {agent}, and its program {program} was not found on PATH={path} of {whose};"
    " install it with {install}": (
        "worker {worker} 由 {agent} 服务，但在 {whose} 的 PATH={path} 上没有找到其程序 {program}；安装方法：{install}"
    ),
    "the agent {agent} needs agents.{agent}.command in the settings": "agent {agent} 需要设置 agents.{agent}.command",
    "{agent} does not ask before it acts, so it may serve permissions full only, and this asks for {permissions}": (
        "{agent} 行动前不会询问，因此只能以 full 权限服务，而此处要求的是 {permissions}"
    ),
    "the program of {agent} is not on PATH={path} any more": "{agent} 的程序已不在 PATH={path} 上",
    "the home of {agent}, {home}, is no folder": "{agent} 的主目录 {home} 不是文件夹",
    "there is no agent {name} in the settings any more": "设置中已没有 agent {name}",
    "it was denied what it needed: {tools}": "它所需的工具被拒绝：{tools}",
    "it ended well and answered nothing": "它正常结束，但没有任何回答",
    "it ended without saying that it was done": "它结束了，但没有说已完成",
    "its session {session} can't be opened again: {said}": "无法再次打开其会话 {session}：{said}",
    "the provider is busy: {said}": "模型服务繁忙：{said}",
}

PROFILES: Final[dict[str, str]] = {
    "the environment of this graph": "此图的环境",
    "{worker} is no worker; there are {names}": "{worker} 不是 worker；现有 {names}",
    "{program} is not there: install {install}": "{program} 不存在：请安装 {install}",
    "a POSIX shell at /bin/sh": "位于 /bin/sh 的 POSIX shell",
    "node 22 or newer": "node 22 或更新版本",
    "Python 3.12 or newer": "Python 3.12 或更新版本",
    "Python 3.13 or newer": "Python 3.13 或更新版本",
    "a program of yours around the library": "一个由您围绕该库编写的程序",
    "as your program says": "按您的程序的说明",
    "goose, as its documents say": "goose，按其文档安装",
    "the program that agents.{agent}.command names": "agents.{agent}.command 所指定的程序",
    "name its program in agents.{agent}.command": "请在 agents.{agent}.command 中指定其程序",
    "{agent} ({how})": "{agent}（{how}）",
    "{agent} has no command": "{agent} 没有命令",
    "it needs {what}": "它需要 {what}",
    "it does not ask before it acts: for permissions full only": "它行动前不会询问：只用于 full 权限",
    "it does not say its version": "它不说明自己的版本",
    "it did not answer initialize: {said}": "它没有回答 initialize：{said}",
    "it said nothing": "它什么也没有说",
    "it speaks version {version} of the protocol, we speak 1": "它使用协议版本 {version}，我们使用 1",
    "it failed without a reason": "它失败了，没有说明原因",
    "what was known of its turn is gone": "关于其回合的记录已丢失",
    "{said} ({ended})": "{said}（{ended}）",
    "the client": "该客户端",
    "the daemon and the login shell": "守护进程与登录 shell",
    "{client} and the login shell": "{client} 与登录 shell",
}

SETTINGS: Final[dict[str, str]] = {
    "there are {names}": "现有 {names}",
    "there is no agent {name}": "没有 agent {name}",
    "there is no worker {name} to set": "没有可设置的 worker {name}",
    "{name} can't be the name of an agent": "{name} 不能作为 agent 的名字",
    "use letters, digits, - and _": "请使用字母、数字、- 和 _",
    "a new agent needs driver and command": "新的 agent 需要 driver 和 command",
    "did you mean {name}? {more}": "您是指 {name} 吗？{more}",
    "the agent shell can't be changed": "agent shell 不能更改",
    "name another agent": "请指定另一个 agent",
    "{name} must be an object": "{name} 必须是对象",
    "{name} must be {what}": "{name} 必须是{what}",
    "a text that is not empty": "非空文本",
    "a list of texts, the program first": "文本列表，程序在最前",
    "a list of names of variables": "变量名列表",
    "a list of some of {choices}": "由 {choices} 中若干项组成的列表",
    "an object of variables and their texts": "由变量名及其文本组成的对象",
    "an object with texts for some of {names}": "以 {names} 中若干项为键、文本为值的对象",
    "a whole number from {low} to {high}": "{low} 到 {high} 的整数",
    "a number of seconds from 1 to 3600": "1 到 3600 的秒数",
    "{name} must be a list of at most {limit} rules": "{name} 必须是最多 {limit} 条规则的列表",
    "{name}: {rule!r}: {reason}": "{name}：{rule!r}：{reason}",
    'write for example ["execute:make *", "edit:docs/**", "read:~/.ssh/**"]': (
        '例如写 ["execute:make *", "edit:docs/**", "read:~/.ssh/**"]'
    ),
    "a rule is a line of 1 to {limit} characters": "规则是 1 到 {limit} 个字符的一行文本",
    "{kind!r} is no tool kind; there are *, {kinds}": "{kind!r} 不是工具种类；现有 *、{kinds}",
    "nothing stands behind the colon; {kind} alone is about all of that kind": (
        "冒号后面没有内容；单写 {kind} 即指该种类的全部"
    ),
    "{kind} names neither path nor command: write {kind} alone": "{kind} 既没有路径也没有命令：请单写 {kind}",
    "a path in a rule has no .. in it: it would fit nothing": "规则中的路径不含 ..：那样什么也匹配不到",
}

DOCTOR: Final[dict[str, str]] = {
    "{path}:{line}: {message}": "{path}:{line}：{message}",
    "installed: {names}": "已安装：{names}",
    "none is installed; scripts run all the same": "一个也没有安装；脚本仍可运行",
    "{graphs} wait for an agent; {rest}": "{graphs} 在等待 agent；{rest}",
    "graphd agents says what to install": "graphd agents 会说明要安装什么",
    "{count} folders on its PATH": "其 PATH 上有 {count} 个文件夹",
    "it does not say its PATH": "它没有给出其 PATH",
    "its start-up files must print PATH within 3 s: try {shell} -l -c env": (
        "其启动文件必须在 3 秒内给出 PATH：请试 {shell} -l -c env"
    ),
    "{count} run": "{count} 个在运行",
    "{count} run, {odd} of them for no attempt: {names}": "{count} 个在运行，其中 {odd} 个不属于任何尝试：{names}",
    "graphd stop, then any command: the next start ends them": "graphd stop，然后执行任意命令：下次启动会结束它们",
}

TEXTS: Final[dict[str, str]] = {**STORED, **PROFILES, **SETTINGS, **DOCTOR}
