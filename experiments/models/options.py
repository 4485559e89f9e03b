"""Options that several commands of this study share."""

from __future__ import annotations

import click

from experiments.harness.command import EXISTING_FOLDER

scene_option = click.option(
    "--scene", "scenes", multiple=True, required=True, help="Folder or zip."
)
places_option = click.option(
    "--scenes", type=EXISTING_FOLDER, required=True, help="Folder of <place>-tracks.zip."
)
threads_option = click.option(
    "--threads", default=2, show_default=True, help="Threads of the networks."
)
rounds_option = click.option(
    "--rounds", default=1000, show_default=True, help="Rounds of the bootstrap."
)
few_rounds_option = click.option(
    "--rounds", default=200, show_default=True, help="Rounds of the bootstrap."
)
noise_option = click.option(
    "--noise", is_flag=True, help="Add a detector's noise to the frames of the measured patches."
)
