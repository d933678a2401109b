"""SIGKILL anywhere in a run, again and again: what is served is whole, and the end is that of a run
nobody disturbed, row for row."""

import os
import random
import shutil

import pytest
import yaml
from fork_server import ForkServer
from observer import Observer
from small_corpus import write_corpus, write_document

SEED = 7
KILLS = int(os.environ.get("FAULTS", "200"))
"""So many runs are killed; `FAULTS=2000` for a longer look."""
KILLS_A_ROUND = 25
KILLS_OF_THE_COMMAND = 2
STEPS_BEGIN = 6
"""Seconds until the first process of a step is there."""
MOMENT = 1_700_000_000

STAGES_ONLY = {
    "collections": {"docs": {"path": "docs", "shards": 2, "settle_seconds": 0}},
    "retrieval_profiles": {
        "everything": {"search": "hybrid", "k": 1000, "candidates": 1000, "merge": False}
    },
    "strategies": {"one": {"chunker": "recursive-20@1", "model": "hash", "profile": "everything"}},
}


def document(number, revision=0):
    return "\n\n".join(
        f"# Part {part} of {number}\n\nSentence {part} of document {number} in revision {revision}."
        for part in range(6)
    )


class Author:
    """Edits, deletes, renames and adds documents, in every folder the same and at the same times."""

    def __init__(self, roots, seed):
        self.roots, self.random = roots, random.Random(seed)
        self.names = {f"{number}.md": number for number in range(14)}
        self.rounds = 0

    def work(self):
        self.rounds += 1
        shuffled = self.random.sample(sorted(self.names), len(self.names))
        edited, deleted, renamed = shuffled[:2], shuffled[2], shuffled[3]
        del self.names[deleted]
        added, to = (f"{name}-{self.rounds}.md" for name in ("new", "moved"))
        self.names[added] = 100 + self.rounds
        self.names[to] = self.names.pop(renamed)
        for root in self.roots:
            for name in (*edited, added):
                write(root, name, document(self.names[name], self.rounds), self.rounds)
            (root / "docs" / deleted).unlink()
            (root / "docs" / renamed).rename(root / "docs" / to)


def write(root, name, text, revision):
    os.utime(write_document(root, name, text), (MOMENT + revision,) * 2)


def test_two_hundred_killed_runs_serve_whole_content_and_end_as_a_calm_one(tmp_path):
    calm, killed, begun = (tmp_path / name for name in ("calm", "killed", "begun"))
    for root in (calm, killed):
        write_corpus(root, {}, **STAGES_ONLY)
        for number in range(14):
            write(root, f"{number}.md", document(number), 0)
    author, moments = Author([calm, killed], SEED), random.Random(SEED)
    kills, served = 0, {}
    with Observer() as observer, ForkServer("stages", tmp_path / "output") as stages:
        while kills < KILLS:
            run = stages.run(calm / "corpus.yaml")
            expected = observer.content(calm / "corpus.yaml")
            whole = [served, observer.served(calm / "corpus.yaml")]
            shutil.rmtree(begun, ignore_errors=True)
            shutil.copytree(killed / ".corpus", begun) if served else begun.mkdir()
            left = min(KILLS_A_ROUND, KILLS - kills)
            while left:
                was_killed = stages.run(
                    killed / "corpus.yaml", kill_after=moments.uniform(0, run.seconds)
                ).was_killed
                found = observer.served(killed / "corpus.yaml")
                assert found in whole
                if was_killed:
                    kills, left = kills + 1, left - 1
                else:
                    assert observer.content(killed / "corpus.yaml") == expected
                if not was_killed and left:  # killed runs got it done: again from the start
                    shutil.rmtree(killed / ".corpus")
                    shutil.copytree(begun, killed / ".corpus")
                    observer.reopen(killed / "corpus.yaml")
            stages.run(killed / "corpus.yaml")
            assert observer.content(killed / "corpus.yaml") == expected
            served = observer.served(killed / "corpus.yaml")
            assert served == whole[1]
            author.work()


# --- the command itself --------------------------------------------------------------------------


def write_inputs(root):
    """Documents, gold questions about them, and the configuration."""
    questions = [
        {
            "id": f"question-{number}",
            "question": f"What does part 3 of document {number} say?",
            "answer": "A sentence.",
            "language": "en",
            "evidence": [
                {"doc_id": f"docs/{number}.md", "quote": f"Sentence 3 of document {number}"}
            ],
        }
        for number in range(12)
    ]
    root.mkdir(parents=True, exist_ok=True)
    (root / "gold.yaml").write_text(yaml.safe_dump({"questions": questions}))
    return write_corpus(
        root,
        {f"{number}.md": document(number) for number in range(14)},
        collections=STAGES_ONLY["collections"],
        questions=["gold.yaml"],
        comparison={"metric": "recall@5", "resamples": 200},
    )


def test_the_command_killed_again_and_again_ends_as_if_nothing_had_happened(tmp_path):
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    file = write_inputs(calm)
    shutil.copytree(calm, killed)
    author, moments = Author([calm, killed], SEED), random.Random(SEED)
    of_killed = {"CORPUS_CONFIG": str(killed / "corpus.yaml")}
    with (
        Observer() as observer,
        ForkServer("materialize", tmp_path / "calm.txt", CORPUS_CONFIG=str(file)) as undisturbed,
        ForkServer("materialize", tmp_path / "killed.txt", **of_killed) as disturbed,
    ):
        for kills in (KILLS_OF_THE_COMMAND, KILLS_OF_THE_COMMAND // 2):
            seconds = undisturbed.run("--promote-first").seconds
            for _ in range(kills):
                disturbed.run("--promote-first", kill_after=moments.uniform(0, seconds))
            disturbed.run("--promote-first")
            expected = observer.content(file)
            assert observer.content(killed / "corpus.yaml") == expected
            assert "leaderboard" in expected
            assert "Nothing changed" in disturbed.run().output
            author.work()


@pytest.mark.skipif("FAULTS" not in os.environ, reason="takes minutes: set FAULTS to a number")
def test_a_command_with_a_process_for_each_step_is_killed_with_and_without_them(tmp_path):
    """Steps that outlive the run that began them write beside the next run."""
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    write_inputs(calm)
    shutil.copytree(calm, killed)
    moments = random.Random(SEED)
    file, of_killed = calm / "corpus.yaml", killed / "corpus.yaml"
    with ForkServer("materialize", tmp_path / "calm.txt", CORPUS_CONFIG=str(file)) as undisturbed:
        seconds = undisturbed.run("--promote-first").seconds
    with (
        Observer() as observer,
        ForkServer("multiprocess", tmp_path / "steps.txt", CORPUS_CONFIG=str(of_killed)) as runs,
    ):
        for with_children in (False, True):
            moment = STEPS_BEGIN + moments.uniform(0, seconds)
            runs.run("--promote-first", kill_after=moment, with_children=with_children)
        runs.run("--promote-first")
        assert observer.content(of_killed) == observer.content(file)
