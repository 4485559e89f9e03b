"""`make tables`: render the tables of README and docs from the results."""

from __future__ import annotations

import click

from experiments.tables.pages import PROJECT, find_differences, update_pages
from experiments.tables.registry import find_tables


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; fail if a page differs.")
@click.option("--list", "only_list", is_flag=True, help="Show names and sources, no more.")
def main(check: bool, only_list: bool) -> None:
    """Render every table between its markers in README.md and docs."""
    tables = find_tables()
    if only_list:
        for name, found in sorted(tables.items()):
            click.echo(f"{name:24} {found.source.relative_to(PROJECT)}")
        return
    changed = find_differences(tables) if check else update_pages(tables)
    for page in changed:
        click.echo(f"{'differs' if check else 'written'}: {page.relative_to(PROJECT)}")
    if check and changed:
        raise click.ClickException("pages differ from the results: run `make tables`")


if __name__ == "__main__":
    main()
