"""Texts that try to leave the place they are written to, in every language that modgraph writes."""

from __future__ import annotations

from hypothesis import strategies

TEXTS = (
    '""";import os; os.system("touch /tmp/never") ;"""',
    "'''; import os #",
    '"',
    '""',
    "ends in a backslash \\",
    "a\nimport os\n",
    "a\rimport os",
    "a\u2028import os\u2029b\x85c\x0bd\x0ce",
    "\x1b]0;title\x07\x1b[31mred\x9b1m",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    '"><img src=x onerror=alert(1)>',
    "']];alert(1)//",
    "a&lt;b&amp;c<b>d</b>",
    "]]><x/>",
    '"]; evil [label="x',
    "#quot;#35;`md`",
    "%%{init: {}}%%",
    "-->",
    "{0} {x} %s $x",
    "\u202eevil\u202c",
    "\x01\x08\x7f",
)
texts = strategies.one_of(strategies.sampled_from(TEXTS), strategies.text(max_size=20)).filter(
    lambda text: text.encode(errors="replace").decode() == text
)
