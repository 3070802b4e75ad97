"""The extension for Visual Studio Code as one file: what is in it, and that it runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest

from editors.package import CONTENT, EXTENSION, SCHEMA, SWEEPS, VSIX, build

NODE, NPM = shutil.which("node"), shutil.which("npm")
CLIENT = """exports.LanguageClient = class {
  constructor(id, name, server, options) { this.started = { id, server, options }; }
  start() { console.log(JSON.stringify(this.started)); return Promise.resolve(); }
};
"""
VSCODE = """const contributors = [];
exports.contributors = contributors;
exports.Uri = { parse: (uri) => ({ fsPath: decodeURIComponent(uri.replace("file://", "")) }) };
exports.workspace = {
  getConfiguration: () => ({ get: () => "/opt/modgraph" }),
  createFileSystemWatcher: (pattern) => pattern,
};
const yaml = { registerContributor: (...given) => contributors.push(given) };
exports.extensions = { getExtension: () => ({ activate: async () => yaml }) };
"""
DRIVER = """const extension = require(process.argv[2] + "/extension.js");
const { contributors } = require("vscode");
extension.activate({ extensionPath: process.argv[2] }).then(() => {
  const [[name, schemaOf, contentOf]] = contributors;
  const found = process.argv.slice(3).map((path) => schemaOf("file://" + path) ?? null);
  console.log(JSON.stringify({ name, found, title: JSON.parse(contentOf(found[0])).title }));
});
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension, built with a client that says how it is started."""
    folder = tmp_path_factory.mktemp("extension")
    (folder / "modules/vscode-languageclient").mkdir(parents=True)
    (folder / "modules/vscode-languageclient/node.js").write_text(CLIENT)
    build(folder / "modgraph.vsix", folder / "modules")
    with zipfile.ZipFile(folder / "modgraph.vsix") as archive:
        archive.extractall(folder / "out")
    return folder / "out"


def test_the_manifests_name_files_that_are_there(unpacked: Path) -> None:
    manifest = ET.parse(unpacked / "extension.vsixmanifest").getroot()
    identity = manifest.find(f".//{{{VSIX}}}Identity")
    package = json.loads((unpacked / "extension/package.json").read_text())
    assert identity is not None
    expected = (package["name"], package["version"], package["publisher"])
    assert (identity.get("Id"), identity.get("Version"), identity.get("Publisher")) == expected
    for asset in manifest.iter(f"{{{VSIX}}}Asset"):
        assert (unpacked / str(asset.get("Path"))).is_file()
    contributed = package["contributes"]
    named = [package["main"], *(each["path"] for each in contributed["grammars"])]
    named += [each["configuration"] for each in contributed["languages"]]
    named += [each["url"] for each in contributed["yamlValidation"]]
    assert all((unpacked / "extension" / each).is_file() for each in named)
    for schema in (SCHEMA, SWEEPS):
        assert (unpacked / "extension" / schema.name).read_bytes() == schema.read_bytes()


def test_every_kind_of_file_has_a_type(unpacked: Path) -> None:
    types = {each.get("Extension") for each in ET.parse(unpacked / "[Content_Types].xml").getroot()}
    suffixes = {path.suffix for path in unpacked.rglob("*") if path.is_file() and path.name != "[Content_Types].xml"}
    assert suffixes <= types and CONTENT in (unpacked / "[Content_Types].xml").read_text()


def test_equal_contents_are_equal_files(tmp_path: Path) -> None:
    (tmp_path / "modules").mkdir()
    for name in ("a.vsix", "b.vsix"):
        build(tmp_path / name, tmp_path / "modules")
    assert (tmp_path / "a.vsix").read_bytes() == (tmp_path / "b.vsix").read_bytes()


@pytest.mark.skipif(NODE is None, reason="needs Node")
def test_the_extension_runs_the_server_and_knows_recipes(unpacked: Path, tmp_path: Path) -> None:
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/vscode.js").write_text(VSCODE)
    (tmp_path / "driver.js").write_text(DRIVER)
    for name in ("net.mod", "net.yaml", "net_small.yaml", "compose.yaml", "net_map.yaml"):
        (tmp_path / name).write_text("weights:\n  a: b\n" if "map" in name else "")
    paths = [tmp_path / name for name in ("net.yaml", "net_small.yaml", "compose.yaml", "net_map.yaml", "net.mod")]
    done = subprocess.run(
        [str(NODE), tmp_path / "driver.js", unpacked / "extension", *paths],
        env={"NODE_PATH": str(tmp_path / "node_modules")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    started, schema = map(json.loads, done.stdout.splitlines())
    assert started["server"] == {"command": "/opt/modgraph", "args": ["lsp"]}
    assert started["options"]["documentSelector"] == [{"scheme": "file", "language": "modgraph"}]
    assert started["options"]["synchronize"]["fileEvents"] == "**/*.mod", "imported files are watched"
    assert schema["found"] == ["modgraph:recipe", "modgraph:recipe", None, None, None]
    assert schema["title"] == "modgraph recipe"


@pytest.mark.slow
@pytest.mark.skipif(NPM is None, reason="needs npm")
def test_the_file_has_every_package_that_it_needs(tmp_path: Path) -> None:
    build(tmp_path / "modgraph.vsix")
    with zipfile.ZipFile(tmp_path / "modgraph.vsix") as archive:
        names = set(archive.namelist())
        pending, seen = ["extension/package.json"], set()
        while pending:
            package = json.loads(archive.read(pending.pop()))
            seen.add(package["name"])
            needed = [f"extension/node_modules/{each}/package.json" for each in package.get("dependencies", {})]
            assert set(needed) <= names
            pending += [each for each in needed if each.split("/")[2] not in seen]
    lock = json.loads((EXTENSION / "package-lock.json").read_text())["packages"]
    assert seen == {name.removeprefix("node_modules/") or "modgraph" for name in lock}
    assert not any("resolved" in each for each in lock.values()), "the lock names no host"
