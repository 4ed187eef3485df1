"""What the command line itself says, in Chinese (`graphd.cli`)."""

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "forget {graphs} of {workspace}": "忘记 {workspace} 的 {graphs}",
    "forgotten: {graphs} of {workspace}": "已忘记：{workspace} 的 {graphs}",
    "the graphs kept for this path belong to {was}; the folder is now {now}": "为此路径保存的图属于 {was}；"
    "而文件夹现在是 {now}",
    "keep them: it is the same project": "保留：这是同一个项目",
    "forget them: it is another one": "忘记：这是另一个项目",
    "leave all as it is": "全部保持原样",
    "which": "请选择",
    "no folder has graphs yet": "还没有任何文件夹有图",
    "nobody is here to ask": "没有人可以询问",
    "imported {graph}: {nodes}": "已导入 {graph}：{nodes}",
    "transcripts of {graphs}": "{graphs} 的记录",
    "removed {what}, {size}": "已移除{what}，{size}",
    "{source} is empty": "{source} 为空",
    "{source} is no UTF-8 text": "{source} 不是 UTF-8 文本",
    "purge what?": "要清理什么？",
    "graphd config get lists the keys": "graphd config get 会列出各键",
    "there is no setting {key}": "没有设置项 {key}",
    "set it to what?": "要设为什么？",
    "the settings file is no JSON object": "设置文件不是 JSON 对象",
    "{group} in the settings file is no object": "设置文件中的 {group} 不是对象",
    "the settings are in order": "设置没有问题",
    "the settings file is not JSON: {trouble}": "设置文件不是 JSON：{trouble}",
}
