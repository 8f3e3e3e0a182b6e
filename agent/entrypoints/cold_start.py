"""How a function or a command loads: the garbage collector rests meanwhile, and leaves alone what was loaded."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Let the collector rest while modules and catalogues are loaded; little of that is garbage.

    Going through all of it again and again takes a tenth of the start. What is there at the end is frozen, as the
    documentation of ``gc.freeze`` advises for processes that fork afterwards, which the web server does.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
