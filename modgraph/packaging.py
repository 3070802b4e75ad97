"""Build the package with the specs of the repository, so that `modgraph new --from` finds them wherever it runs."""

from __future__ import annotations

from pathlib import Path

from setuptools.command.build_py import build_py

SPECS = Path("specs")  # below the repository's folder, in which packages are built
TUTORIAL = Path("docs/tutorial")


class BuildWithSpecs(build_py):  # type: ignore[misc]
    """Copies `specs` and the tutorial into the package. An editable install reads those of the repository."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for path in list_texts():
                target = Path(self.build_lib) / "modgraph" / path
                self.mkpath(str(target.parent))
                self.copy_file(str(path), str(target))

    def get_source_files(self) -> list[str]:
        """Return what an sdist holds: the specs too."""
        return [*super().get_source_files(), *map(str, list_texts())]


def list_texts() -> list[Path]:
    """Return the specs and recipes, in order, and the pages of the tutorial."""
    specs = sorted(path for path in SPECS.rglob("*") if path.suffix in (".mod", ".yaml"))
    return specs + sorted(TUTORIAL.glob("*.md"))
