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
}
