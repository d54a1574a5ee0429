"""Texts that try to break out of a document."""

from __future__ import annotations

TEXTS = {
    "script": "<script>alert('x')</script><img src=x onerror=alert(1)>",
    "attribute": '" onmouseover="alert(1)" x=\'',
    "end of block": "</code></pre></td></table></details></section></main>",
    "cdata": "]]> <![CDATA[ --> <!-- <? ?>",
    "fence": "```\n# heading\n```\n~~~\n````python\n````\n# another\n",
    "pipes": "| a | b |\n|---|---|\n\\| \\\\| c",
    "markdown": "# h\n- item\n1. one\n> quote\n\n---\n===\n*bold* __x__ [link](http://example.org) ![i](//e.org) <b>",
    "entities": "&lt;b&gt; &amp;amp; &#x41;",
    "template": "{{ 7*7 }} {% for x in y %} {# c #}",
    "control": "a\x00b\x07c\x1bd\x7fe\x85f",
    "surrogates": "x\ud800y\udfffz",
    "direction": "\u202eevil\u202c \u2066x\u2069 \u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd",
    "line ends": "a\rb\r\nc\u2028d\u2029e",
    "long line": "w" * 3000,
    "dollars": "$$ \\frac{1}{2} $$ $x$",
    "empty": "",
}
