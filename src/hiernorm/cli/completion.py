"""`hiernorm completion`: a script that teaches the shell our commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    For this session:
      eval "$(hiernorm completion bash)"
    To keep it, add that line to ~/.bashrc, for zsh to ~/.zshrc. For fish:
      hiernorm completion fish > ~/.config/fish/completions/hiernorm.fish
    """  # noqa: D301
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    root = context.find_root().command
    click.echo(kind(root, {}, "hiernorm", "_HIERNORM_COMPLETE").source())
