"""A headless agent program that replays what a real one was recorded saying: `fake_headless.py DIALECT WORDS…`.

Standard library alone. The case is named in the prompt (`case: denied`), a resumed session must be one that an earlier
run opened, and the words must be those that the real program takes: anything else ends with code 90 and a reason. What
was asked and done is appended to $FAKE_TRACE, a JSON line each.
"""

import json
import os
import re
import sys
import time
from pathlib import Path

RECORDED = Path(__file__).resolve().parents[2] / "data" / "headless"
VALUED = {
    "claude": {"--output-format", "--session-id", "--resume", "--model", "--permission-mode"},
    "codex": {"-m", "-c"},
    "opencode": {"--format", "-s", "-m", "--variant"},
    "gemini": {"--output-format", "--session-id", "--resume", "-m", "--approval-mode", "-p"},
}
PLAIN = {
    "claude": {"-p", "--verbose"},
    "codex": {"exec", "resume", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"},
    "opencode": {"run", "--auto"},
    "gemini": set[str](),
}
NEEDED = {
    "claude": {("--output-format", "stream-json"), ("-p", ""), ("--verbose", "")},
    "codex": {("exec", ""), ("--json", "")},
    "opencode": {("run", ""), ("--format", "json")},
    "gemini": {("--output-format", "stream-json")},
}


def refuse(reason: str) -> None:
    print(reason, file=sys.stderr)
    sys.exit(90)


def parsed(dialect: str, words: list[str]) -> tuple[dict[str, str], list[str]]:
    options: dict[str, str] = {}
    rest: list[str] = []
    todo = list(words)
    while todo:
        word = todo.pop(0)
        if word in VALUED[dialect]:
            options[word] = todo.pop(0)
        elif word in PLAIN[dialect]:
            options[word] = ""
        elif word.startswith("-"):
            refuse(f"unknown option {word}")
        else:
            rest.append(word)
    if lacking := NEEDED[dialect] - set(options.items()):
        refuse(f"lacks {sorted(lacking)}")
    return options, rest


def trace(**row: object) -> None:
    if os.environ.get("FAKE_TRACE"):
        with Path(os.environ["FAKE_TRACE"]).open("a") as file:
            file.write(json.dumps(row) + "\n")


def main() -> None:
    dialect, *words = sys.argv[1:]
    if sys.stdin.read():
        refuse("something stands on stdin")
    options, rest = parsed(dialect, words)
    prompt = options.get("-p") or rest[-1]
    resumed = options.get("--resume") or options.get("-s") or (rest[0] if dialect == "codex" and len(rest) > 1 else "")
    found = re.search(r"case: (\w+)", prompt)
    case = found[1] if found else "ok"
    store = Path(os.environ["HOME"]) / f"sessions-{dialect}"
    store.mkdir(exist_ok=True)
    session = resumed or options.get("--session-id") or f"ses_{len(list(store.iterdir())) + 1}"
    if resumed:
        case = "gone" if not (store / resumed).exists() else "resume" if case == "ok" else case
    trace(dialect=dialect, words=words, prompt=prompt, case=case, session=session)
    recorded = json.loads((RECORDED / dialect / f"{case}.json").read_text())
    if case != "gone":
        (store / session).touch()
    for line in recorded["stdout"]:
        print(line.replace("{session}", session), flush=True)
        if "case-pause" in prompt:
            time.sleep(0.05)
        hung = store.with_name("hung")
        if "case-hang" in prompt and not hung.exists():  # in the middle of its first turn
            hung.touch()
            time.sleep(1000)
    print(recorded["stderr"], file=sys.stderr)
    if case == "ok" and "write " in prompt:
        Path(prompt.partition("write ")[2].split()[0]).write_text("hi")
    sys.exit(recorded["exitCode"])


if __name__ == "__main__":
    main()
