"""The official archives of the UBC patches: the one table of their hosts and digests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Archive:
    """An archive and where it lives.

    Attributes
    ----------
    scene : str
        Name of the scene, and of the file without ``.zip``.
    url : str
        Address.
    digest : str or None
        Digest as published, ``md5:...``; None where none is: then the first download counts.
    release : str
        The release it belongs to.
    """

    scene: str
    url: str
    digest: str | None
    release: str


def _table() -> dict[str, Archive]:
    washington = "http://phototour.cs.washington.edu/patches"
    imperial = "http://icvl.ee.ic.ac.uk/vbalnt"
    brown = "http://matthewalunbrown.com/patchdata"
    rows = (
        ("notredame", imperial, "md5:509eda8535847b8c0a90bbb210c83484", "2011, DoG"),
        ("yosemite", imperial, "md5:533b2e8eb7ede31be40abc317b2fd4f0", "2011, DoG"),
        ("liberty", imperial, "md5:fdd9152f138ea5ef2091746689176414", "2011, DoG"),
        ("notredame_harris", brown, "md5:69f8c90f78e171349abdf0307afefe4d", "2011, Harris"),
        ("yosemite_harris", brown, "md5:a73253d1c6fbd3ba2613c45065c00d46", "2011, Harris"),
        ("liberty_harris", brown, "md5:c731fcfb3abb4091110d0ae8c7ba182c", "2011, Harris"),
        ("trevi", washington, None, "2007"),
        ("halfdome", washington, None, "2007"),
    )
    table = {
        scene: Archive(scene, f"{host}/{scene}.zip", digest, release)
        for scene, host, digest, release in rows
    }
    # The one scene of which both releases have an archive of the same name.
    table["notredame_2007"] = Archive("notredame_2007", f"{washington}/notredame.zip", None, "2007")
    return table


ARCHIVES = _table()
"""Scene -> archive."""
