"""Every screen of the table has its pictures and its section, and no picture is of something else."""

import pytest

from tools.console_pictures import MOST_BYTES, PAGE, PICTURES, WIDTHS, page, screens

NAMES = [f"{name}-{width}.webp" for name in screens() for width in WIDTHS]


def test_the_committed_page_is_current():
    """Where it is not: python -m tools.console_pictures --page."""
    assert PAGE.read_text() == page()


def test_each_screen_has_its_pictures_and_each_picture_its_screen():
    """Where not: python -m tools.console_pictures."""
    assert sorted(path.name for path in PICTURES.iterdir()) == sorted(NAMES)


def test_all_pictures_together_stay_small():
    assert sum(path.stat().st_size for path in PICTURES.iterdir()) <= MOST_BYTES


@pytest.mark.parametrize("width", WIDTHS)
def test_a_picture_is_one_screen(width):
    """As wide and high as the screen that it is of, by the head of an extended WebP file."""
    for name in screens():
        head = (PICTURES / f"{name}-{width}.webp").read_bytes()[:30]
        assert (head[:4], head[8:16]) == (b"RIFF", b"WEBPVP8X"), name
        size = tuple(int.from_bytes(head[at : at + 3], "little") + 1 for at in (24, 27))
        assert size == WIDTHS[width], name
