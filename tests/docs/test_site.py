"""The built site opens from the file system, without a network: search, formulas, every link."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

pytest.importorskip("mkdocs", reason="needs hiernorm[docs]")
pytest.importorskip("latex2mathml", reason="needs hiernorm[docs]")

from paths import ROOT

OUTSIDE = re.compile(r"""(?:src|srcset)=["']?(?:https?:)?//|url\(["']?(?:https?:)?//|@import""")
STYLES = re.compile(r'<link[^>]+rel="?(?:stylesheet|preconnect|icon)"?[^>]*href="?(?:https?:)?//')
TARGET = re.compile(r'\b(?:href|src)="([^"#?]+)')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        check=True,
    )
    return folder


def test_no_page_loads_anything_from_another_site(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not OUTSIDE.search(text), page
        assert not STYLES.search(text), page


def test_every_link_between_pages_leads_to_a_file(site: Path) -> None:
    for page in site.rglob("*.html"):
        if page.name == "404.html":
            continue  # Its links start at the root of a server.
        for target in TARGET.findall(page.read_text(encoding="utf-8")):
            if re.match(r"[a-z]+:", target):
                continue
            assert (page.parent / unquote(unescape(target))).is_file(), (page.name, target)


def test_names_in_docstrings_are_links(site: Path) -> None:
    pages = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    for page, text in pages.items():
        assert not re.search(r":(?:attr|class|data|exc|func|meth|mod):<", text), page
    text = pages[site / "reference" / "api.html"]
    assert re.search(r'href="#hiernorm.Database"[^>]*><code>hiernorm.Database</code></a>', text)


def test_every_formula_is_mathml(site: Path) -> None:
    text = (site / "concepts" / "exactness.html").read_text(encoding="utf-8")
    assert text.count("<math") > 50
    assert "\\(" not in text
    assert "arithmatex" not in text


def test_site_works_from_the_file_system_without_a_network(browser, site: Path) -> None:
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("requestfailed", lambda request: problems.append(request.url))
    page.on("console", lambda line: line.type == "error" and problems.append(line.text))
    page.on("request", lambda r: r.url.startswith(("file:", "data:")) or problems.append(r.url))

    page.goto((site / "index.html").as_uri())
    page.click("[data-md-component=search-query]")
    page.keyboard.type("tombstone")
    hit = page.locator(".md-search-result__item a").first
    hit.wait_for(timeout=60_000)
    hit.click()
    page.wait_for_url("**/*.html*")
    assert "tombstone" in page.inner_text("article").lower()

    page.goto((site / "concepts" / "exactness.html").as_uri())
    formula = page.locator("math[display=block]").first
    box = formula.bounding_box()
    # Drawn, not shown as source: one line of it, no wider than the column.
    assert 15 < box["height"] < 60
    assert 200 < box["width"] < 700
    assert "\\" not in formula.text_content()
    assert problems == []


def test_wide_tables_and_formulas_do_not_widen_a_phone(browser, site: Path) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    for name in ("index", "concepts/exactness", "research/performance", "research/reproduction"):
        page.goto((site / f"{name}.html").as_uri(), wait_until="networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") == 390, name
