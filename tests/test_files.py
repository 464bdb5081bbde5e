"""Files are written whole or not at all, with and without a system that can name an unnamed file."""

import os

import pytest

from dpcate import files


@pytest.fixture(params=[True, False])
def folder(request, tmp_path, monkeypatch):
    if not request.param:
        monkeypatch.setattr(files, "_named_when_whole", lambda path, content: False)
    return tmp_path


def test_a_file_is_replaced_by_the_whole_new_one(folder):
    for content in (b"old", b"new" * 100_000):
        files.write_atomically(folder / "file", content)
        assert (folder / "file").read_bytes() == content
    mask = os.umask(0)
    os.umask(mask)
    assert (folder / "file").stat().st_mode & 0o777 == 0o666 & ~mask
    assert os.listdir(folder) == ["file"]


def test_a_failure_leaves_the_old_file_alone(folder, monkeypatch):
    files.write_atomically(folder / "file", b"old")

    def full(descriptor):
        raise OSError("no space left")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        files.write_atomically(folder / "file", b"new")
    assert (folder / "file").read_bytes() == b"old"
    assert os.listdir(folder) == ["file"]
