"""The page's only style sheet: light and dark by the reader's wish, a scroll bar where a thing is wide, and paper."""

from base64 import b64encode
from hashlib import sha256
from typing import Final

_LIGHT: Final = """
--paper:#fff;--soft:#f4f5f7;--line:#d5d9e0;--ink:#1b1f27;--quiet:#565d6b;--link:#0b57b8;
--achieved:#176d35;--failed:#b3201c;--blocked:#8a5300;--running:#0b5cad;--ready:#0a6a75;--waiting:#565d6b;
--queue:#b9c0cc;--bar:#3a86d8;
"""
_DARK: Final = """
--paper:#15181d;--soft:#1e2229;--line:#39404c;--ink:#e4e7ec;--quiet:#a3abb9;--link:#7db7ff;
--achieved:#6fcf8d;--failed:#ff8a80;--blocked:#f0b65a;--running:#79b8ff;--ready:#66d0dc;--waiting:#a3abb9;
--queue:#4a5260;--bar:#4c8fd6;
"""
SHEET: Final = (
    f":root{{color-scheme:light dark;{_LIGHT}}}@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}"
    """
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
header,main,footer{max-width:70rem;margin:0 auto;padding:0 1rem}
h1{font-size:1.7rem;line-height:1.25;margin:1.5rem 0 .25rem;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:2.5rem 0 .75rem;padding-bottom:.25rem;border-bottom:1px solid var(--line)}
h3{font-size:1.05rem;margin:0;overflow-wrap:anywhere}
h4{font-size:.9rem;margin:1rem 0 .25rem;color:var(--quiet)}
p{margin:.5rem 0}
a{color:var(--link)}
a:focus-visible,[tabindex]:focus-visible{outline:3px solid var(--link);outline-offset:2px}
:target{scroll-margin-top:1rem}
article:target{border-color:var(--link)}
nav ul,.legend{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;list-style:none;margin:.75rem 0;padding:0}
.skip{position:absolute;left:-99rem}
.skip:focus{position:static}
.banner{border-left:4px solid var(--running);background:var(--soft);padding:.5rem .75rem}
.state{font-weight:600;white-space:nowrap}
.quiet,.empty{color:var(--quiet)}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.15rem 1rem;margin:.5rem 0}
dt{color:var(--quiet)}
@media (min-width:50rem){header dl{grid-template-columns:max-content minmax(0,1fr) max-content minmax(0,1fr)}}
dd{margin:0;overflow-wrap:anywhere}
.wide{overflow:auto;max-width:100%}
table{border-collapse:collapse;width:100%;font-size:.9rem;margin:.5rem 0}
caption{text-align:left;color:var(--quiet);padding:.25rem 0;font-weight:600}
th,td{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0;border-top:1px solid var(--line)}
thead th{color:var(--quiet);font-weight:500;white-space:nowrap}
tbody th{font-weight:500}
tbody td{overflow-wrap:anywhere}
pre{background:var(--soft);border:1px solid var(--line);border-radius:4px;padding:.5rem .75rem;margin:.25rem 0;
max-height:26rem;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere;font:.85rem/1.45 ui-monospace,monospace}
code{font:.9em ui-monospace,monospace}
article{border:1px solid var(--line);border-radius:6px;padding:.75rem 1rem;margin:.75rem 0}
svg{display:block;font:13px system-ui,sans-serif}
svg text{fill:var(--ink)}
svg .quiet{fill:var(--quiet)}
.box rect{fill:var(--soft);stroke:var(--quiet);stroke-width:1.5}
.box:hover rect{fill:var(--paper)}
.box:focus{outline:none}
.box:focus rect{stroke:var(--link);stroke-width:4}
.edge{fill:none;stroke:var(--quiet);stroke-width:1.5}
.tip,.axis{fill:var(--quiet)}
.grid{stroke:var(--line)}
.queue{fill:var(--queue)}
.work{fill:var(--bar)}
.end{fill:var(--quiet)}
.legend li{display:flex;align-items:center;gap:.4rem;color:var(--quiet);font-size:.9rem}
footer{color:var(--quiet);font-size:.85rem;padding:2rem 1rem}
"""
    + "".join(
        f".{name}{{color:var(--{tone})}}.box.{name} rect{{stroke:var(--{tone})}}svg .{name} .mark,svg .mark.{name}"
        f"{{fill:var(--{tone})}}"
        for name, tone in {
            "achieved": "achieved",
            "complete": "achieved",
            "failed": "failed",
            "not_achieved": "failed",
            "blocked": "blocked",
            "stuck": "blocked",
            "running": "running",
            "active": "running",
            "ready": "ready",
            "waiting": "waiting",
            "skipped": "waiting",
            "cancelled": "waiting",
        }.items()
    )  # fmt: skip
    + f"@media print{{:root{{color-scheme:light;{_LIGHT}}}"
    """
body{font-size:10pt}
nav,.skip{display:none}
header,main,footer{max-width:none;padding:0}
pre{max-height:none}
.wide{overflow:visible}
svg{max-width:100%;height:auto}
article{break-inside:auto}
h2,h3,h4,caption{break-after:avoid}
tr{break-inside:avoid}
a{color:inherit}}
"""
)
POLICY: Final = (
    "default-src 'none'; style-src 'sha256-" + b64encode(sha256(SHEET.encode()).digest()).decode() + "'; "
    "base-uri 'none'; form-action 'none'"
)
"""Nothing is fetched, no script runs; the sheet is named by its hash, so that no other one is taken."""
