"""How runs went, in Chinese: reasons that the log keeps in English and that are matched back when they are shown."""

from typing import Final

TEXTS: Final[dict[str, str]] = {
    # what people and the daemon did
    "paused": "已暂停",
    "cancelled": "已取消",
    "cleared": "已清除",
    "set without starting": "已设置，尚未启动",
    "the daemon was stopped": "守护进程已停止",
    "released by a person": "由人释放",
    # how attempts end
    "it ran out of time": "已超时",
    "it failed": "失败",
    "its processes ended without a record": "其进程已结束，但没有留下记录",
    "exit code {code}": "退出码 {code}",
    "exit code {code}: {said}": "退出码 {code}：{said}",
    "ended by {signal}": "被 {signal} 终止",
    "ended by {signal}: {said}": "被 {signal} 终止：{said}",
    "could not be started: {trouble}": "无法启动：{trouble}",
    "stopped before it was started": "在启动之前就被停止",
    "it was never started": "从未启动",
    "another process has its session open": "另一个进程正打开着它的会话",
    "the agent opened the session {session}, which another process has open": (
        "agent 打开了会话 {session}，而另一个进程正打开着它"
    ),
    "a shell script is no template: {found} would be run as it stands; read the file $GRAPHD_INPUT_DIR/<name> or the"
    " variable GRAPHD_VAR_<name>": "shell 脚本不是模板：{found} 会原样执行；请改为读取文件 $GRAPHD_INPUT_DIR/<name>"
    " 或变量 GRAPHD_VAR_<name>",
    "{given!r} can't be the name of an input file": "{given!r} 不能用作输入文件的名字",
    "condition: {reason}": "条件：{reason}",
    "{reference}: the output of {node} is longer than what is kept inline": (
        "{reference}：{node} 的输出超出了内联保存的长度"
    ),
    "{reference}: the output of {node} is not JSON": "{reference}：{node} 的输出不是 JSON",
    "{asked}: the left side is {kind}, not {wanted}": "{asked}：左边是{kind}，而不是{wanted}",
    "missing": "缺失",
    "a boolean": "布尔值",
    "a number": "数字",
    "a text": "文本",
    "a list": "列表",
    "an object": "对象",
    # keepers
    "no daemon came back in time; its tree was ended": "没有守护进程及时回来；其进程树已被终止",
    "its keeper was told to end; its tree was ended": "其 keeper 被要求结束；其进程树已被终止",
    "its keeper failed: {log}": "其 keeper 失败：{log}",
    "its keeper ended before it began": "其 keeper 在开始之前就已结束",
    "its keeper died": "其 keeper 已死亡",
    "its keeper holds its lock": "其 keeper 仍持有锁",
    "its keeper holds its lock and does not answer": "其 keeper 持有锁，但没有应答",
    "its keeper refuses this daemon: {code}": "其 keeper 拒绝本守护进程：{code}",
    "its journal is shorter than what is known of it": "其日志比已知的内容短",
    "its journal can't be read: {trouble}": "无法读取其日志：{trouble}",
    "its header is cut short": "其文件头不完整",
    "no journal of version {version}": "不是版本 {version} 的日志",
    "its exit record is broken": "其退出记录已损坏",
    "its result could not be captured: {trouble}": "无法保存其结果：{trouble}",
    "{captured} of {wanted} bytes of stdout were captured": "stdout 的 {wanted} 字节中只保存了 {captured} 字节",
    "SIGKILL did not end it": "SIGKILL 未能终止它",
    "it ran in another PID namespace, {namespace}": "它运行在另一个 PID 命名空间 {namespace} 中",
    "the environment of processes of ours can't be read": "无法读取本用户进程的环境变量",
    "{reason}, and these could not be ended": "{reason}，而且这些进程无法终止",
    "{reason}, and {why}": "{reason}，而且{why}",
    # why a graph stands still
    "attempt {node}@{number} was lost: {reason}": "尝试 {node}@{number} 丢失：{reason}",
    "{node} was lost {count} times in a row: {reason}": "{node} 连续丢失 {count} 次：{reason}",
    "the daemon started {count} times in ten minutes; graphd resume goes on": "守护进程在十分钟内启动了 {count} 次；"
    "graphd resume 可继续",
    "no installed agent serves worker {worker}; graphd agents shows what was searched": "没有已安装的 agent 能担任"
    " worker {worker}；graphd agents 会显示查找过的位置",
    "{node}: no installed agent serves worker {worker}; graphd agents shows what was searched": "{node}：没有已安装的"
    " agent 能担任 worker {worker}；graphd agents 会显示查找过的位置",
    "can't prove that the processes of {names} are dead": "无法证明 {names} 的进程已经死亡",
    "required node {node} failed: {reason}": "必需节点 {node} 失败：{reason}",
    "every end of the graph failed, or was skipped because what came before it failed": "图的每个末端都已失败，"
    "或因其上游失败而被跳过",
    # what agents say, and what checks find
    "its agent took it back": "其 agent 已收回",
    "its attempt ended": "其尝试已结束",
    "its agent cancelled the turn by itself": "其 agent 自行取消了本轮",
    "the check failed": "检查未通过",
    "the check gave no verdict: {reason}": "检查没有给出结论：{reason}",
    "the check's answer is no verdict": "检查的答复不是结论",
    "the check named no gaps": "检查没有指出缺失之处",
    "its check never gave a verdict: {reason}": "其检查始终没有给出结论：{reason}",
    "more than {limit} tool calls": "工具调用超过 {limit} 次",
}
