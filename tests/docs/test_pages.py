"""What the pages name exists, and what they show can be run."""

import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pytest
import yaml

from chunking_assets import config as configuration
from evals.gold_questions.load import load_questions

ROOT = Path(__file__).parents[2]
PAGES = {
    page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8")
    for page in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
}
FOLDERS = "chunking_assets|evals|dagster_defs|sql|tests|docs|benchmarks|sample_corpus|deploy"
COMMANDS = {"make", "export", "printf", "uv", ".venv/bin/python"}


def blocks(*languages):
    """(page, text) of every fenced block in one of these languages."""
    fence = re.compile(rf"^```(?:{'|'.join(languages)})\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    found = [(page, block) for page, text in PAGES.items() for block in fence.findall(text)]
    assert found
    return found


def named(pattern):
    """(page, what the pattern's group found), once each."""
    found = {(page, name) for page, text in PAGES.items() for name in re.findall(pattern, text)}
    assert found
    return sorted(found)


def slug(heading):
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize(("page", "target"), named(r"\]\(([^)\s]+)\)"))
def test_a_link_leads_somewhere(page, target):
    assert not target.startswith("http")
    file, _, anchor = target.partition("#")
    linked = (ROOT / page).parent / file if file else ROOT / page
    assert linked.is_file()
    if anchor:
        headings = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in map(slug, headings)


@pytest.mark.parametrize(("page", "path"), named(rf"`((?:{FOLDERS})/[\w./-]*)`"))
def test_a_path_that_is_named_exists(page, path):
    assert (ROOT / path).exists()


@pytest.mark.parametrize(("page", "test"), named(r"`(tests/[\w./]+::\w+)`"))
def test_a_test_that_is_named_exists(page, test):
    file, _, name = test.partition("::")
    assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize(("page", "module"), named(r"python -m ((?:\w+\.)*\w+)"))
def test_a_module_that_is_named_can_be_run(page, module):
    package = find_spec(module)
    assert package
    assert package.submodule_search_locations is None or find_spec(f"{module}.__main__")


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(("page", "target"), named(r"(?:`|\n)make ([a-z-]+)"))
def test_a_make_target_that_is_named_exists(page, target):
    command = ["make", "-n", target, "DATA=folder"]
    dry_run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert dry_run.returncode == 0, dry_run.stderr


@pytest.mark.parametrize(("page", "block"), blocks("sh"))
def test_a_shell_block_is_valid_and_calls_what_is_known(page, block):
    parsed = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True)
    assert parsed.returncode == 0, parsed.stderr
    assert {line.split()[0] for line in block.splitlines()} <= COMMANDS


@pytest.mark.parametrize(("page", "block"), blocks("sql"))
@pytest.mark.parametrize("state", ["empty", "filled"])
def test_a_query_runs_on_an_empty_and_on_a_filled_database(page, block, state, request):
    workspace = request.getfixturevalue(state)
    with duckdb.connect(workspace.eval_database, read_only=True) as connection:
        connection.execute(block).fetchall()


@pytest.mark.parametrize(("page", "block"), blocks("yaml"))
def test_a_yaml_block_is_a_configuration_part_of_one_or_questions(page, block, tmp_path):
    content = yaml.safe_load(block)
    if content.keys() == {"questions"} and isinstance(content["questions"][0], dict):
        file = tmp_path / "questions.yaml"
        file.write_text(block, encoding="utf-8")
        assert load_questions([file])
        return
    if (
        not {"collections", "strategies"} <= content.keys()
    ):  # part of a file: put into the one at the root
        content = with_part(yaml.safe_load((ROOT / "corpus.yaml").read_text("utf-8")), content)
    write_world(tmp_path, content)
    configuration.load(tmp_path / "corpus.yaml")


def with_part(whole, part):
    return whole | {name: whole.get(name, {}) | entries for name, entries in part.items()}


def write_world(root, content):
    """The file, and the folders and question files it names."""
    (root / "corpus.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    for collection in content["collections"].values():
        (root / collection["path"]).mkdir(parents=True)
    for pattern in content.get("questions", []):
        file = root / pattern.replace("*", "all")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("questions: []\n", encoding="utf-8")


def test_the_leaderboard_shown_is_of_the_sample_corpus():
    readme = PAGES["README.md"]
    board = readme[readme.index("Leaderboard,") :].partition("\n\nRAGAS")[0]
    shown = re.findall(r"^ ([a-z][\w-]+)(?: ●)? +\d", board, re.MULTILINE)
    assert sorted(shown) == sorted(configuration.load(ROOT / "corpus.yaml").strategies)


def test_the_edit_of_the_tour_can_be_made():
    file, before = re.search(r"In `(.+?)`, change \"(.+?)\"", PAGES["README.md"]).groups()
    assert before in (ROOT / file).read_text(encoding="utf-8")


def test_the_licence_is_the_one_declared():
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in licence
    assert "Version 2.0, January 2004" in licence
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
