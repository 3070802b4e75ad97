"""Files are written whole or not at all, and only ordinary ones are read."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from modgraph_runtime.files import open_file, replacing


def write(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path / "a", b"new")
    finally:
        os.umask(before)
    assert (tmp_path / "a").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o600)
    write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/real")
    for content in (b"first", b"second"):
        write(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "there/real").read_bytes() == content
    assert names(tmp_path) == ["link", "there"]


def test_a_write_protected_file_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o444)
    with pytest.raises(PermissionError, match="write-protected"):
        write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_what_fails_half_way_leaves_what_was_there(tmp_path: Path) -> None:
    write(tmp_path / "a", b"old")
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "a") as file:
        file.write(b"ne")
        raise KeyboardInterrupt
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def special_files(folder: Path) -> list[tuple[Path, str]]:
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "socket"))
    return [
        (folder, "folder"),
        (folder / "pipe", "pipe"),
        (folder / "socket", "socket"),
        (Path("/dev/zero"), "device"),
    ]


def test_what_is_no_ordinary_file_is_neither_read_nor_replaced(tmp_path: Path) -> None:
    """A pipe that nobody writes to would be waited for for ever, a device might never end."""
    for path, word in special_files(tmp_path):
        with pytest.raises(OSError, match=word):
            open_file(path)
        with pytest.raises(OSError, match=word), replacing(path):
            pass
    assert names(tmp_path) == ["pipe", "socket"]


def test_a_long_name_can_be_written(tmp_path: Path) -> None:
    write(tmp_path / ("a" * 255), b"new")
    assert names(tmp_path) == ["a" * 255]


def killed_while_writing(path: Path) -> None:
    script = (
        "import os, signal, sys; from modgraph_runtime.files import replacing\n"
        "with replacing(sys.argv[1]) as file:\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(path)], check=False).returncode == -signal.SIGKILL


def test_what_a_killed_writer_left_goes_with_the_next_write(tmp_path: Path) -> None:
    write(tmp_path / "a", b"old")
    killed_while_writing(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert len(names(tmp_path)) == 2
    write(tmp_path / "another", b"new")
    assert names(tmp_path) == ["a", "another"]


def test_writers_at_work_do_not_clear_each_other_away(tmp_path: Path) -> None:
    with replacing(tmp_path / "slow") as slow:
        slow.write(b"slow")
        write(tmp_path / "quick", b"quick")
    assert names(tmp_path) == ["quick", "slow"]

    def many(name: str) -> None:
        for count in range(50):
            write(tmp_path / name, str(count).encode())

    writers = [threading.Thread(target=many, args=(name,)) for name in "abcd"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert {(tmp_path / name).read_bytes() for name in "abcd"} == {b"49"}
    assert names(tmp_path) == ["a", "b", "c", "d", "quick", "slow"]
