"""What agents that talk come to, in Chinese: reasons and notices, kept in English in the log and matched back."""

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "there is no driver {name}": "没有驱动 {name}",
    "the driver {name} can't be loaded: {trouble}": "无法加载驱动 {name}:{trouble}",
    "the profile {profile} names no command": "配置 {profile} 没有写明命令",
    "the folder {folder} is no absolute path": "文件夹 {folder} 不是绝对路径",
    "the agent asks to use a tool": "代理请求使用一个工具",
    "the agent did not answer {method} within {limit:g} s": "代理没有在 {limit:g} 秒内回答 {method}",
    "the agent ended without a result: {said}": "代理没有给出结果就结束了：{said}",
    "the agent answered with an error: {said}": "代理以错误回答：{said}",
    "the agent wants to be logged in: {said}": "代理要求先登录：{said}",
    "the provider is over its limits: {said}": "模型提供方已达上限：{said}",
    "the prompt is too long for the model: {said}": "提示对模型来说太长：{said}",
    "the model refused": "模型拒绝了",
    "the model refused: {said}": "模型拒绝了：{said}",
    "it came to its limit ({limit}) again": "它再次达到上限（{limit}）",
    "it stopped for {stop}, taken as end_turn": "它因 {stop} 停止，按 end_turn 处理",
    "it ended without its result, though it was asked for it again": "再次要求之后，它仍未给出结果就结束了",
    "the agent speaks version {theirs} of its protocol, graphd version {ours}": (
        "代理使用其协议的版本 {theirs}，graphd 使用版本 {ours}"
    ),
    "the agent offers no way to take up a session again": "代理没有提供重新接续会话的方法",
    "the agent does not know it any more": "代理已不认识它",
    "the agent does not know it any more: {said}": "代理已不认识它：{said}",
    "the agent opened a session without an id": "代理打开了一个没有标识的会话",
    "the session {wanted} could not be taken up again: {said}; a fresh one is told what is known of it": (
        "会话 {wanted} 无法重新接续：{said}；已把所知情况告知新的会话"
    ),
    "the agent refused the mode {mode}: {said}": "代理拒绝了模式 {mode}：{said}",
    "the agent did not take its {wish}: {said}": "代理没有接受 {wish}：{said}",
}
