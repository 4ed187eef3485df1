"""The lines that editors.md gives to editors that can't be run here are at least what those editors can read."""

import json
import tomllib

from tests.kit.documented import block, blocks

PAGE = "docs/how-to/editors.md"


def test_the_lines_for_helix_name_a_server_and_use_it() -> None:
    lines = tomllib.loads(block(PAGE, "toml"))
    assert lines["language-server"] == {"graphd": {"command": "graphd", "args": ["connect"]}}
    (language,) = lines["language"]
    assert language["name"] == "yaml"
    assert language["language-servers"][0] == "graphd"


def test_the_lines_for_zed_put_our_program_where_it_is_used() -> None:
    (settings,) = [found for text in blocks(PAGE, "json") if "lsp" in (found := json.loads(text))]
    (name,) = settings["lsp"]
    assert settings["lsp"][name]["binary"] == {"path": "graphd", "arguments": ["connect"]}
    assert settings["languages"]["YAML"]["language_servers"] == [name]
