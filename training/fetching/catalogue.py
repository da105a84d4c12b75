"""The corpora that can be fetched by name: catalogue.toml as objects."""

import dataclasses
import sys
from pathlib import Path

from tf_transformer.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CATALOGUE = Path(__file__).parent / "catalogue.toml"


@dataclasses.dataclass(frozen=True)
class RemoteFile:
    """A file to fetch and where its text goes; the keys are told in catalogue.toml."""

    url: str
    to: dict[str, str] = dataclasses.field(default_factory=dict)
    pairs: str | None = None
    bytes: int | None = None
    sha256: str | None = None
    text_sha256: str | None = None

    @property
    def name(self) -> str:
        """Its name without the way to it."""
        return self.url.rpartition("/")[2]


@dataclasses.dataclass(frozen=True)
class Entry:
    """A corpus."""

    name: str
    title: str
    recipe: str
    about: str
    licence: str
    files: tuple[RemoteFile, ...]

    @property
    def results(self) -> list[str]:
        """The files of its folder."""
        found = [name for file in self.files for name in file.to.values()]
        if any(file.pairs for file in self.files):
            found += [f"{split}.{side}" for split in SPLITS for side in ("src", "tgt")]
        return list(dict.fromkeys(found))


SPLITS = ("train", "valid", "test")


def read_catalogue() -> dict[str, Entry]:
    """All corpora by name."""
    tables = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))
    return {
        name: Entry(
            **{**table, "name": name, "files": tuple(RemoteFile(**file) for file in table["files"])}
        )
        for name, table in tables.items()
    }


def find(name: str) -> Entry:
    """The corpus of that name; InputError with all names where there is none."""
    known = read_catalogue()
    if name not in known:
        raise InputError(f"There is no corpus {name}: it is one of {', '.join(known)}.")
    return known[name]
