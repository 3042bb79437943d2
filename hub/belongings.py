"""What belongs to a hub beside its store: settings and secrets, carried along with a backup.

Without its secrets a restored hub could speak to none of its appliances.
"""

from pathlib import Path

from config.paths import PRIVATE_FOLDER, DataFolder, write_private


def pack(folder: DataFolder, target: Path) -> list[Path]:
    """Copy settings and secrets of `folder` into the folder `target`; returns what was copied, relative.

    Raises:
        OSError: something cannot be read or written.
    """
    return [_copy(folder.root, name, target) for name in _belongings(folder.root)]


def unpack(source: Path, folder: DataFolder) -> list[Path]:
    """Put the settings and secrets in the backup `source` back, where `folder` has none of that name.

    Raises:
        OSError: something cannot be read or written.
    """
    folder.make()
    missing = [name for name in _belongings(source) if not (folder.root / name).exists()]
    return [_copy(source, name, folder.root) for name in missing]


def _belongings(root: Path) -> list[Path]:
    there = DataFolder(root)
    # A link could lead anywhere; we make none, so none is carried along.
    files = [
        there.settings,
        *sorted(path for path in there.secrets.glob("*") if not path.name.startswith(".")),
    ]
    return [path.relative_to(root) for path in files if path.is_file() and not path.is_symlink()]


def _copy(root: Path, name: Path, target: Path) -> Path:
    (target / name).parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    write_private(target / name, (root / name).read_bytes())
    return name
