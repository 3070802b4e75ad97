"""Builds the extension for Visual Studio Code as one file: python editors/package.py -o modgraph.vsix.

A .vsix file is a zip archive: the extension with the packages that it needs, which npm installs by package-lock.json,
and two manifests.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

HERE = Path(__file__).parent
EXTENSION, SCHEMA, SWEEPS = HERE / "vscode", HERE / "recipe.schema.json", HERE / "sweep.schema.json"
MODULES = "node_modules"
EPOCH = (1980, 1, 1, 0, 0, 0)  # of all files, so that equal contents are equal archives
TYPES = {
    ".json": "application/json",
    ".js": "application/javascript",
    ".md": "text/markdown",
    ".vsixmanifest": "text/xml",
}
NO_NPM = "error: the extension needs npm to be built: install Node 20 or newer, then build it again"
CONTENT = "http://schemas.openxmlformats.org/package/2006/content-types"
VSIX = "http://schemas.microsoft.com/developer/vsx-schema/2011"


def build(output: Path, modules: Path | None = None) -> list[str]:
    """Write the extension; `modules` is a folder of installed packages, else npm installs them. Returns its files."""
    if modules is not None:
        return _write(output, modules)
    with tempfile.TemporaryDirectory() as folder:
        return _write(output, install(Path(folder)))


def install(folder: Path) -> Path:
    """The packages that the extension needs, from npm. Raises `SystemExit` where that fails."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit(NO_NPM)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(EXTENSION / name, folder)
    command = [npm, "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"error: npm could not install what the extension needs:\n{done.stderr}")
    return folder / MODULES


def _write(output: Path, modules: Path) -> list[str]:
    files = dict(_list_files(modules))
    suffixes = {Path(name).suffix for name in files} | {".vsixmanifest"}
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "[Content_Types].xml", format_types(suffixes).encode())
        _add(archive, "extension.vsixmanifest", format_manifest().encode())
        for name, path in sorted(files.items()):
            _add(archive, f"extension/{name}", path.read_bytes())
        return archive.namelist()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)


def _list_files(modules: Path) -> Iterator[tuple[str, Path]]:
    """The files of the extension, by their names in it."""
    for path in EXTENSION.rglob("*"):
        name = path.relative_to(EXTENSION)
        if path.is_file() and MODULES not in name.parts and name.name != "package-lock.json":
            yield name.as_posix(), path
    yield from ((each.name, each) for each in (SCHEMA, SWEEPS))
    for path in modules.rglob("*"):
        name = path.relative_to(modules)
        if path.is_file() and path.suffix not in (".map", ".ts") and not name.parts[0].startswith("."):
            yield f"{MODULES}/{name.as_posix()}", path


def format_types(suffixes: set[str]) -> str:
    """The kinds of files in the archive."""
    rows = (
        f'<Default Extension={quoteattr(each)} ContentType="{TYPES.get(each, "application/octet-stream")}"/>'
        for each in sorted(suffixes)
        if each
    )
    return f'<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="{CONTENT}">{"".join(rows)}</Types>\n'


def format_manifest() -> str:
    """What Visual Studio Code reads before it installs the extension."""
    package = json.loads((EXTENSION / "package.json").read_text())
    name, publisher = quoteattr(package["name"]), quoteattr(package["publisher"])
    return f"""<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="{VSIX}">
  <Metadata>
    <Identity Language="en-US" Id={name} Version={quoteattr(package["version"])} Publisher={publisher}/>
    <DisplayName>{escape(package["displayName"])}</DisplayName>
    <Description xml:space="preserve">{escape(package["description"])}</Description>
    <Categories>{escape(",".join(package["categories"]))}</Categories>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value={quoteattr(package["engines"]["vscode"])}/>
    </Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>
  </Assets>
</PackageManifest>
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("-o", "--output", type=Path, default=Path("modgraph.vsix"), metavar="FILE")
    options = parser.parse_args()
    files = build(options.output)
    print(f"{options.output}: {len(files)} files, {options.output.stat().st_size / 1e6:.1f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
