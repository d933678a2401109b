"""Sources beside local folders: what they list and read, and what they never take for a path."""

import http.server
import json
import os
import subprocess
import threading

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from chunking_assets.errors import CorpusError
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.raw_documents.file_system import FileSystem
from chunking_assets.raw_documents.listing import FileIndex, scan
from chunking_assets.raw_documents.source import hostile, redacted


def listing_of(path, root="/", **settings):
    settings = {"settle_seconds": 0} | settings
    return scan("docs", Collection(path=path, **settings), root)


def contents(listing):
    return {f.doc_id: f.read().decode() for files in listing.files.values() for f in files}


def reasons(listing):
    return dict(listing.skipped)


def paths(source, after=None):
    return [file.path for file in source.files([], after)]


# --- any file system of fsspec -------------------------------------------------------------------


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def test_a_file_system_of_fsspec_is_listed_below_its_url_and_read(memory):
    memory.pipe({"/bucket/kb/a.md": b"A", "/bucket/kb/en/b.md": b"B", "/bucket/kbx/c.md": b"C"})
    listing = listing_of("memory://bucket/kb")
    assert contents(listing) == {"docs/a.md": "A", "docs/en/b.md": "B"}


def test_hidden_unfinished_and_excluded_files_are_left_alone_there_too(memory):
    names = ("a.md", ".git/config", "b.md.part", "drafts/c.md", "d.bin")
    memory.pipe({f"/kb/{name}": b"x" for name in names})
    listing = listing_of("memory://kb", include=("**/*.md",), exclude=("drafts/",))
    assert (list(contents(listing)), listing.skipped) == (["docs/a.md"], [])


@pytest.mark.parametrize("prefix", ["memory://gone", "memory://kb/gone"])
def test_a_prefix_that_is_not_there_is_a_failed_listing_and_not_an_empty_one(memory, prefix):
    memory.pipe("/kb/a.md", b"A")
    with pytest.raises(CorpusError, match="Nothing is taken as deleted"):
        listing_of(prefix)


def test_a_file_system_whose_folder_fails_half_way_fails_as_a_whole(memory, monkeypatch):
    memory.pipe({"/kb/a.md": b"A", "/kb/sub/b.md": b"B"})
    whole = type(memory).ls

    def ls(self, path, **options):
        if str(path).endswith("sub"):
            raise PermissionError("403")
        return whole(self, path, **options)

    monkeypatch.setattr(type(memory), "ls", ls)
    with pytest.raises(CorpusError, match="cannot be listed"):
        listing_of("memory://kb")


class Hostile:
    """A file system whose server lists whatever it likes."""

    def __init__(self, names):
        self.names, self.asked = names, []

    def invalidate_cache(self):
        pass

    def ls(self, path, detail):
        names = self.names if path == "kb" else []
        return [{"name": n, "size": 1, "type": "file", "ETag": "1"} for n in names]

    def cat_file(self, path):
        self.asked.append(path)
        return b"x"


NAMES = [
    "kb/good.md",
    "kb/../../etc/passwd",
    "kb/./here.md",
    "kb/a\0.md",
    "kb/a//b.md",
    "kb/caf\u00e9.md",
    "kb/cafe\u0301.md",
]


def hostile_source(names):
    source = FileSystem("memory://kb")
    source._system, source._root = Hostile(names), "kb"
    return source


def test_hostile_names_of_a_listing_are_reported_and_never_asked_for(monkeypatch):
    source = hostile_source(NAMES)
    monkeypatch.setattr(Collection, "source", lambda self, root: source)
    listing = listing_of("memory://kb")
    assert set(contents(listing)) == {"docs/good.md", "docs/caf\u00e9.md"}
    assert len(source._system.asked) == 2
    assert reasons(listing) == {
        "%2E%2E/%2E%2E/etc/passwd": "a part of its path is empty, '.' or '..'",
        "%2E/here.md": "a part of its path is empty, '.' or '..'",
        "a%00.md": "its name has a NUL",
        "a//b.md": "a part of its path is empty, '.' or '..'",
        "caf%C3%A9.md": "another file's name is the same after normalisation",
    }


@given(st.text(alphabet="ab./\0\\\u0301\ud800 ", max_size=12))
def test_what_is_not_hostile_stays_below_its_folder(path):
    if hostile(path) is None:
        assert os.path.normpath(f"/root/{path}").startswith("/root/")
        assert "\0" not in path
        path.encode()


def test_a_listing_goes_on_after_a_path_without_gap_or_repetition(memory):
    names = ["a.md", "a/1.md", "a/b/2.md", "a-b.md", "b/3.md", "z.md"]
    memory.pipe({f"/kb/{name}": b"x" for name in names})
    source = FileSystem("memory://kb")
    whole = paths(source)
    assert sorted(whole) == sorted(names)
    for number, path in enumerate(whole, 1):
        assert paths(source, after=path) == whole[number:]


def test_a_back_end_that_is_not_installed_is_named_with_its_extra(monkeypatch):
    def missing(url, **options):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(CorpusError, match=r"pip install 'chunking-assets\[s3\]'"):
        listing_of("s3://bucket/kb")


# --- credentials ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["https://user:hunter2@host/list.json", "s3://hunter2@bucket", "https://host/l?sig=hunter2"],
)
def test_a_url_with_credentials_is_refused_without_repeating_them(path):
    with pytest.raises(ValidationError) as refused:
        Collection(path=path)
    message = refused.value.errors()[0]["msg"]
    assert "environment" in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    "text",
    ["GET https://u:hunter2@h/a failed", "url='https://h/a?X-Amz-Signature=hunter2&x=1', 403"],
)
def test_messages_lose_what_urls_carry(text):
    assert "hunter2" not in redacted(text)


# --- a list of URLs ------------------------------------------------------------------------------


class Site(http.server.ThreadingHTTPServer):
    """Serves `pages`, each with an ETag of its content; `broken` answer 500."""

    def __init__(self):
        self.pages, self.broken, self.requests, self.with_tags = {}, set(), [], True
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                site.requests.append((self.command, self.path))
                path = self.path.partition("?")[0]
                body = site.pages.get(path)
                self.send_response(500 if path in site.broken else 404 if body is None else 200)
                body = body or b""
                self.send_header("Content-Length", str(len(body)))
                if site.with_tags:
                    self.send_header("ETag", f'"{hash(body)}"')
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            do_HEAD = do_GET

            def log_message(self, *args):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def site():
    with Site() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_list_of_lines_names_files_relative_to_itself(site):
    site.pages = {
        "/kb/files.txt": b"# two files\nen/a.md\n\n/other/b%20c.md\n",
        "/kb/en/a.md": b"A",
        "/other/b c.md": b"B",
        "/other/b%20c.md": b"B",
    }
    listing = listing_of(f"{site.url}/kb/files.txt")
    assert contents(listing) == {"docs/en/a.md": "A", "docs/127.0.0.1/other/b c.md": "B"}


def test_what_the_list_knows_of_a_file_is_not_asked_again(site):
    files = [{"url": "a.md", "path": "guide/a.md", "size": 1, "etag": "7"}]
    site.pages = {"/files.json": json.dumps({"files": files}).encode(), "/a.md": b"A"}
    listing = listing_of(f"{site.url}/files.json")
    (file,) = listing.files["docs"]
    assert (file.doc_id, file.file.mark) == ("docs/guide/a.md", [1, "7"])
    assert site.requests == [("GET", "/files.json")]


def test_a_file_of_which_the_list_says_nothing_is_marked_by_its_server(site):
    site.pages = {"/files.txt": b"a.md\n", "/a.md": b"A"}
    url = f"{site.url}/files.txt"
    before = listing_of(url).files["docs"][0].file.mark
    assert listing_of(url).files["docs"][0].file.mark == before
    site.pages["/a.md"] = b"B"
    assert listing_of(url).files["docs"][0].file.mark != before


def test_a_file_nothing_vouches_for_is_read_to_see_whether_it_changed(site, tmp_path):
    site.pages, site.with_tags = {"/files.txt": b"a.md\n", "/a.md": b"A"}, False
    url = f"{site.url}/files.txt"

    def revision():
        return FileIndex(tmp_path, "docs").revision(listing_of(url).files["docs"][0], 1000)

    before = revision()
    site.pages["/a.md"] = b"B"
    assert revision() != before


@pytest.mark.parametrize("fault", ["missing", "broken", "no list", "no url"])
def test_a_list_that_cannot_be_read_is_a_failed_listing(site, fault):
    text = {"no list": b'{"pages": []}', "no url": b'[{"path": "a.md"}]'}.get(fault, b"[]")
    site.pages = {} if fault == "missing" else {"/files.json": text}
    site.broken = {"/files.json"} if fault == "broken" else set()
    with pytest.raises(CorpusError, match=r"files\.json"):
        listing_of(f"{site.url}/files.json")


def test_a_list_cannot_reach_for_other_schemes_or_outside_its_collection(site):
    entries = ["file:///etc/passwd", "ftp://host/a.md", {"url": "a.md", "path": "../../a.md"}]
    entries += [{"url": "a.md", "path": "/etc/a.md"}, "%2e%2e/%2e%2e/b.md"]
    entries = [e if isinstance(e, str) else {**e, "etag": "1"} for e in entries]
    site.pages = {"/files.json": json.dumps(entries).encode()}
    listing = listing_of(f"{site.url}/files.json")
    assert listing.files == {"docs": []}
    assert len(listing.skipped) == len(entries)
    assert not any(".." in path for path, _ in listing.skipped)


def test_a_signed_url_is_read_and_its_signature_is_in_no_message(site):
    site.pages = {"/files.txt": b"a.md?sig=hunter2\ngone.md?sig=hunter2\n", "/a.md": b"A"}
    good, bad = listing_of(f"{site.url}/files.txt").files["docs"]
    assert (good.doc_id, good.read()) == ("docs/a.md", b"A")
    with pytest.raises(OSError, match="FileNotFoundError") as error:
        bad.read()
    assert "hunter2" not in str(error.value)
    assert error.value.__suppress_context__


# --- a revision in git ---------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "repo")


class Repository:
    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        command = ["git", "-C", str(self.folder), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, files=(), **more):
        for name, text in {**dict(files), **more}.items():
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")
        return self.git("rev-parse", "HEAD")

    def listing(self, **settings):
        return listing_of(f"git+file://{self.folder}", **settings)


def test_a_repository_is_read_at_a_revision_whatever_is_checked_out(repository):
    first = repository.commit({"a.md": "one", "en/b.md": "B"})
    repository.commit({"a.md": "two"})
    (repository.folder / "a.md").write_text("not committed")
    assert contents(repository.listing()) == {"docs/a.md": "two", "docs/en/b.md": "B"}
    assert contents(repository.listing(revision=first))["docs/a.md"] == "one"
    at = listing_of(f"git+file://{repository.folder}@{first}")
    assert contents(at)["docs/a.md"] == "one"


def test_a_commit_leaves_the_marks_of_the_files_it_does_not_touch(repository):
    def marks():
        return {f.doc_id: f.file.mark for f in repository.listing().files["docs"]}

    repository.commit({"a.md": "one", "b.md": "B"})
    before = marks()
    repository.commit({"a.md": "two"})
    assert {d for d, mark in marks().items() if before[d] != mark} == {"docs/a.md"}


def test_odd_names_in_a_repository_are_names_and_links_are_not_followed(repository):
    (repository.folder / "link.md").symlink_to("/etc/passwd")
    repository.commit({"with space.md": "1", 'quote"s.md': "2", "tab\tand\nline.md": "3"})
    listing = repository.listing()
    assert sorted(contents(listing).values()) == ["1", "2", "3"]
    assert reasons(listing) == {"link.md": "symbolic links are not followed"}


@pytest.mark.parametrize("revision", ["nowhere", "--output=/tmp/x", "HEAD:a.md", "$(id)"])
def test_a_revision_that_is_none_is_a_failed_listing_and_no_option(repository, revision):
    repository.commit({"a.md": "one"})
    with pytest.raises(CorpusError, match="Nothing is taken as deleted"):
        repository.listing(revision=revision)


def test_a_folder_without_a_repository_is_a_failed_listing(tmp_path):
    with pytest.raises(CorpusError, match="cannot be listed"):
        listing_of(f"git+file://{tmp_path}/gone")


def test_the_repository_of_a_hook_is_not_taken_for_the_one_named(repository, monkeypatch, tmp_path):
    repository.commit({"a.md": "one"})
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "another"))
    assert contents(repository.listing()) == {"docs/a.md": "one"}


@pytest.mark.parametrize(
    "settings",
    [
        {"path": "docs", "revision": "main"},
        {"path": "git+https://host/repo.git"},
        {"path": "git+ssh://host/repo.git"},
    ],
)
def test_a_revision_goes_with_a_repository_on_disk_only(settings):
    with pytest.raises(ValidationError):
        Collection(**settings)
