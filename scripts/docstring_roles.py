"""Extension of griffe: names in roles, such as :class:`hiernorm.Index`, become links of the site.

Editors and `help()` read docstrings as Sphinx writes them; the site is written in Markdown.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`([^`]+)`")


class DocstringRoles(griffe.Extension):
    """Replaces the roles in all docstrings."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object, before its sections are parsed."""
        if obj.docstring is not None:
            obj.docstring.value = ROLE.sub(lambda role: link(obj, role[1]), obj.docstring.value)


def link(obj: griffe.Object, name: str) -> str:
    """A link to a name that a docstring uses; code where the site has no entry of it."""
    target = name if name.startswith("hiernorm.") else path_of(obj, name)
    return f'<autoref identifier="{target}" optional><code>{name}</code></autoref>'


def path_of(obj: griffe.Object, name: str) -> str:
    """The full path of a name: a member of the object or of what contains it."""
    scope: Any = obj
    first = name.lstrip(".").partition(".")[0]
    while scope is not None:
        if first in scope.members:
            return f"{scope.path}.{name.lstrip('.')}"
        scope = scope.parent
    return name
