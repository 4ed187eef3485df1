"""A person's own rules of what agents may do: the settings `permissions.{deny, ask, allow}`, of `toolKind:glob`.

Their order, and what a rule is about, is `core.policy`'s. A workspace may add to `deny` alone: whatever it says,
nothing is allowed, or even asked, that a person's own settings and the table do not. Source: execution.md, People.
"""

from pathlib import Path
from typing import Final

from graphd.base.text import Text, t
from graphd.core.policy import rule_reason
from graphd.daemon.agent_settings import Row

MAX_RULES: Final = 256


def read_rules(row: Row) -> tuple[str, ...]:
    """The rules of one list, each once, `~/` made the real home. Raises SettingsRefused for what is no rule."""
    rules = row.value
    if not isinstance(rules, list) or not all(isinstance(rule, str) for rule in rules) or len(rules) > MAX_RULES:
        message = t("{name} must be a list of at most {limit} rules", name=row.name, limit=MAX_RULES)
        raise row.refused(message, _example())
    for rule in rules:
        reason = rule_reason(rule)
        if reason is not None:
            raise row.refused(t("{name}: {rule!r}: {reason}", name=row.name, rule=rule[:80], reason=reason), _example())
    return tuple(dict.fromkeys(map(_at_home, rules)))


def _at_home(rule: str) -> str:
    """Agents' paths are judged with their links resolved, so the home is as well."""
    kind, colon, glob = rule.partition(":")
    return f"{kind}{colon}{Path.home().resolve()}{glob[1:]}" if glob.startswith("~/") and kind != "execute" else rule


def _example() -> Text:
    return t('write for example ["execute:make *", "edit:docs/**", "read:~/.ssh/**"]')
