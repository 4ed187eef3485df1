"""Store, settings and profiles in Chinese (`graphd.store`, `graphd.daemon`, `graphd.children`)."""

from typing import Final

STORE: Final[dict[str, str]] = {
    "{path}: {message}": "{path}：{message}",
    "{who} serves this workspace": "{who} 正在服务此工作区",
    "graphd {version} with pid {pid}": "graphd {version}（pid {pid}）",
    "another graphd": "另一个 graphd",
    "attach to it, or `graphd stop` it first": "请连接到它，或先执行 `graphd stop`",
    "the database is damaged: {detail}": "数据库已损坏：{detail}",
    "nothing was changed: keep a copy, then restore a backup or move the file away to begin afresh": "没有做任何改动："
    "请保留一份副本，然后恢复备份，或移走该文件重新开始",
    "the database has schema {found}, this graphd knows up to {known}": "数据库的结构版本是 {found}，此 graphd 最多支持"
    " {known}",
    "use the newer graphd that wrote it": "请使用写入它的较新的 graphd",
    "this database belongs to {was}, the workspace is {is_now}": "此数据库属于 {was}，而工作区是 {is_now}",
    "another project took its place: say which one the graphs belong to": (
        "另一个项目占用了它的位置：请说明这些图属于哪一个"
    ),
    "this is another program's database": "这是另一个程序的数据库",
    "move it away: graphd did not make it": "请移走它：它不是 graphd 创建的",
    "nothing was stored: {detail}": "没有保存任何内容：{detail}",
    "make space on the disk; it goes on by itself": "请腾出磁盘空间；之后会自动继续",
    "make the state folder writable; it goes on by itself": "请使状态文件夹可写；之后会自动继续",
    "close the program that holds the database open": "请关闭占用该数据库的程序",
    "please report this": "请报告此问题",
    "the change was not written": "更改没有写入",
    "graphd doctor looks at the store": "graphd doctor 会检查存储",
    "request id {request} came with other params before": "请求 id {request} 此前曾带着其他参数使用",
    "use a fresh request id": "请使用新的请求 id",
    "the state folder is not a folder": "状态文件夹不是文件夹",
    "remove what is there": "请移除该位置上的内容",
    "the state folder belongs to uid {uid}": "状态文件夹属于 uid {uid}",
    "set GRAPHD_STATE_DIR to a folder of your own": "请把 GRAPHD_STATE_DIR 设为你自己的文件夹",
    "the state folder is on {kind}, where locks are not reliable": "状态文件夹位于 {kind} 上，那里的锁不可靠",
    "set GRAPHD_STATE_DIR to a folder on a local disk; the workspace itself may stay where it is": "请把"
    " GRAPHD_STATE_DIR 设为本地磁盘上的文件夹；工作区本身可以留在原处",
    # the log against the tables
    "the log can't be read at {place}: {trouble}": "无法读取日志的 {place} 处：{trouble}",
    "the log says otherwise in {names}": "日志中 {names} 的内容与此不同",
    "a column": "某一列",
    "missing in the table": "表中缺少",
    "not in the log": "日志中没有",
    "{table} {name}: {trouble}": "{table} {name}：{trouble}",
    "{graph}: base at rev {base}, which is not in the log": "{graph}：rev {base} 处的基准不在日志中",
    "{graph}: base at rev {rev} differs in {name}": "{graph}：rev {rev} 处的基准在 {name} 上有差异",
    "{graph}: cleared, yet in the tables": "{graph}：已清除，却仍在表中",
    "{graph}: its log has no beginning": "{graph}：其日志没有开头",
    "{graph}: rev {after} follows rev {rev}": "{graph}：rev {rev} 之后是 rev {after}",
    "{graph}/{rev}.{index}: {kind} moves {node} from {origin} to {state}": "{graph}/{rev}.{index}：{kind} 把 {node} 从"
    " {origin} 变成了 {state}",
}

PLACES: Final[dict[str, str]] = {
    "graphd workspace list names those that have graphs": "graphd workspace list 会列出有图的文件夹",
    "graphd workspace forget {path} removes them": "graphd workspace forget {path} 可将其移除",
    "no graphs are kept for {path}": "没有为 {path} 保存的图",
    "{path} is no folder": "{path} 不是文件夹",
    "name the folder that it is now": "请指定它现在所在的文件夹",
    "processes of {count} attempts run under their keepers": "有 {count} 个尝试的进程仍在各自的 keeper 下运行",
    "start the daemon there and let them end, or graphd stop --cancel": (
        "请在那里启动守护进程并等它们结束，或执行 graphd stop --cancel"
    ),
    "{path} has graphs of its own": "{path} 有它自己的图",
}

SETTINGS: Final[dict[str, str]] = {
    "a workspace may not set {key}": "工作区不能设置 {key}",
    "put {key} into {user_file}": "请把 {key} 写到 {user_file}",
    "can't be read ({trouble})": "无法读取（{trouble}）",
    "make it a readable UTF-8 file": "请使其成为可读的 UTF-8 文件",
    "not JSON: {trouble}": "不是 JSON：{trouble}",
    "mend the syntax": "请修正语法",
    "the top must be an object": "最外层必须是对象",
    "write {…}": "请写 {…}",
    "known keys: {known}": "已知的键：{known}",
    "{name} must be of type {kind}": "{name} 的类型必须是 {kind}",
    "{name} must be between {low:g} and {high:g}": "{name} 必须在 {low:g} 与 {high:g} 之间",
    "{name} must be one of {choices}": "{name} 必须是下列之一：{choices}",
    "got {value}": "得到的是 {value}",
}

TEXTS: Final[dict[str, str]] = {**STORE, **PLACES, **SETTINGS}
