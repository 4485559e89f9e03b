"""Hook of mkdocs: formulas become MathML when the site is built, so that pages need no script.

Browsers draw MathML themselves. `pymdownx.arithmatex` marks what is a formula.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def on_page_content(html: str, **_: Any) -> str:
    """Replace the formulas of a page."""
    html = INLINE.sub(lambda found: convert(unescape(found[1]), display="inline"), html)
    html = DISPLAY.sub(
        lambda found: f'<p class="formula">{convert(unescape(found[1]), display="block")}</p>', html
    )
    if "arithmatex" in html:
        raise ValueError("a formula was not converted: expected \\(...\\) or \\[...\\]")
    return html
