"""A document: sentences, lists, quotations, tables and drawings in reading order, whatever they are written as."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of text below their headings.

    Attributes:
        columns: The headings.
        rows: As many texts each as there are headings.
        numbers: From this column on the texts are figures.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: int = 1


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A drawing that stands alone.

    Attributes:
        name: Of its file, without an ending.
        title: For those who cannot see it.
        svg: The drawing.
        text: The same in characters, for what cannot hold a drawing; empty where it is kept as a file beside it.
    """

    name: str
    title: str
    svg: str
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link of ours, never of the text of others.

    Attributes:
        text: What it says.
        url: Absolute; http or https.
    """

    text: str
    url: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the document, its fields in the order they are shown; every text is escaped by what writes it.

    Attributes:
        title: Its heading; empty for the first.
        items: A list of short sentences.
        quotes: Text of others as it was written, such as log lines.
        table: Rows of text.
    """

    title: str = ""
    paragraphs: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    plots: tuple[Plot, ...] = ()
    table: Table | None = None
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Document:
    """The whole document.

    Attributes:
        title: What it is about.
    """

    title: str
    sections: tuple[Section, ...]

    @property
    def plots(self) -> tuple[Plot, ...]:
        """Every drawing."""
        return tuple(plot for section in self.sections for plot in section.plots)
