"""Files of pairs: names with spaces, and mistakes that are named."""

from __future__ import annotations

import json

import pytest

pycolmap = pytest.importorskip("pycolmap", reason="needs pycolmap")
pytest.importorskip("cv2", reason="needs OpenCV")

from click.testing import CliRunner  # noqa: E402

from colmap_support import photo_views, sift_bytes, write_database  # noqa: E402
from hiernorm.adapters.colmap import StoredImage, read_pairs, write_pairs  # noqa: E402
from hiernorm.cli.app import app  # noqa: E402

pycolmap.logging.minloglevel = 3


@pytest.fixture(scope="module")
def features():
    return [sift_bytes(view, 200) for view in photo_views(3)]


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def images(*names):
    return [StoredImage(number, name, 1) for number, name in enumerate(names, start=1)]


def test_photos_with_spaces_in_their_names_are_matched_and_verified(features, tmp_path):
    database = write_database(tmp_path / "database.db", features, name="my photo {}.png")
    done = run("colmap", "match", database, "--json")
    assert json.loads(done.stdout)["pairs verified"] == 3
    pairs = tmp_path / "pairs.txt"
    done = run("colmap", "pairs", database, "--top", 2, "-o", pairs)
    assert done.exit_code == 0
    assert "3 pairs have names with spaces" in done.stderr
    assert run("colmap", "pairs", database, "--top", 2).stdout == pairs.read_text()
    done = run("colmap", "match", database, "--pairs", pairs, "--replace", "--json")
    facts = json.loads(done.stdout)
    assert (facts["pairs matched"], facts["pairs verified"]) == (3, 3)


def test_colmap_leaves_out_lines_whose_names_have_spaces(features, tmp_path):
    database = write_database(tmp_path / "database.db", features, name="my photo {}.png")
    run("colmap", "pairs", database, "-o", tmp_path / "pairs.txt")
    pycolmap.verify_matches(str(database), str(tmp_path / "pairs.txt"))
    with pycolmap.Database.open(str(database)) as opened:
        assert opened.num_matched_image_pairs() == 0


@pytest.mark.parametrize(
    "names",
    [
        ("a.png", "b c.png"),
        ("a  b.png", "c.png"),
        (" a.png", "b.png "),
        ("a", "a a"),
        ("\u00e4 \u2028.png", "\u00a0.png"),
    ],
)
def test_what_is_written_is_read_again(names, tmp_path):
    for pair in ([(1, 2)], [(1, 3), (2, 3)]):
        write_pairs(tmp_path / "pairs.txt", pair, images(*names, "a a a"))
        assert read_pairs(tmp_path / "pairs.txt", images(*names, "a a a")) == pair


@pytest.mark.parametrize("name", ["a\tb.png", "a\nb.png", "#1.png"])
def test_names_that_no_line_can_hold_are_refused(name, tmp_path):
    with pytest.raises(ValueError, match="cannot hold the name"):
        write_pairs(tmp_path / "pairs.txt", [(1, 2)], images("a.png", name))
    assert list(tmp_path.iterdir()) == []


WRONG = {
    "unknown": (b"a.png\nb.png c.png\n", r"line 1: expected two names of images .* 'a.png'"),
    "no image": (b"a.png d.png\n", r"line 1: no image 'd.png' in the database"),
    "ambiguous": (b"x y z\n", r"line 1: 'x y z' can be read in 2 ways: put a tab between"),
    "no text": (b"a.png \xff.png\n", r"is not UTF-8 text \(byte 0xff at 6\): expected two names"),
    "empty": (b"", r"has no pairs: expected two names of images a line"),
    "only comments": (b"# a\n\na.png a.png\n", r"has no pairs: expected two names"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_mistakes_in_a_file_of_pairs_are_named(wrong, tmp_path):
    content, text = WRONG[wrong]
    (tmp_path / "pairs.txt").write_bytes(content)
    with pytest.raises(ValueError, match=text) as error:
        read_pairs(tmp_path / "pairs.txt", images("a.png", "b.png", "x", "y z", "x y", "z"))
    assert str(tmp_path / "pairs.txt") in str(error.value)


def test_lines_of_other_programs_are_read(tmp_path):
    (tmp_path / "pairs.txt").write_bytes(b"\xef\xbb\xbfa.png b.png\r\n  a.png   c d.png \r\n")
    assert read_pairs(tmp_path / "pairs.txt", images("a.png", "b.png", "c d.png")) == [
        (1, 2),
        (1, 3),
    ]
