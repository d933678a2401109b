"""A disk that fills up in the middle of a run: said, nothing half served, and healed by space."""

import os
import shutil
import subprocess

import pytest
from fork_server import ForkServer
from observer import Observer
from small_corpus import write_corpus, write_document

SAID = ("No space left on device", "disk is full")
ENOUGH = 64 << 20


def document(number, revision=0):
    return "\n\n".join(
        f"Sentence {part} of document {number} in revision {revision}." for part in range(20)
    )


@pytest.fixture
def small_disk(tmp_path):
    """A disk of its own for the workspace."""
    folder = tmp_path / "killed" / ".corpus"
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={ENOUGH}", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here: that takes the rights of root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk, left):
    """Leave so many bytes; the file that takes the rest."""
    ballast = disk / "ballast"
    with ballast.open("wb") as file:
        file.write(bytes(shutil.disk_usage(disk).free - left))
    return ballast


def write(root, number, revision):
    file = write_document(root, f"{number}.md", document(number, revision))
    os.utime(file, (1_700_000_000 + revision,) * 2)


def test_a_full_disk_is_said_serves_nothing_half_and_is_healed_by_space(tmp_path, small_disk):
    roots = calm, _ = tmp_path / "calm", small_disk.parent
    for root in roots:
        write_corpus(root, {})
        for number in range(30):
            write(root, number, 0)
    files = [root / "corpus.yaml" for root in roots]
    failures = 0
    with Observer() as observer, ForkServer("stages", tmp_path / "output") as stages:
        served = {}
        for revision, shares in enumerate([(0.02, 0.3, 0.7), (0.05, 0.4)]):
            if revision:
                for root in roots:
                    for number in range(0, 30, 2):
                        write(root, number, revision)
            before = used(calm / ".corpus")
            stages.run(files[0])
            needed = used(calm / ".corpus") - before
            for share in shares:
                ballast = fill(small_disk, int(share * needed))
                run = stages.run(files[1], fails=True)
                if run.status:
                    failures += 1
                    assert any(said in run.output for said in SAID), run.output
                new, found = observer.served(files[0]), observer.served(files[1])
                assert all(found.get(name) in (served.get(name), new[name]) for name in new)
                ballast.unlink()
            stages.run(files[1])
            served = observer.served(files[1])
            assert observer.content(files[1]) == observer.content(files[0])
    assert failures >= 3


def used(folder):
    """What a file system of pages takes for it."""
    sizes = (file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return sum((size + 4095) // 4096 * 4096 for size in sizes)
