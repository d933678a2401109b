"""SIGKILL anywhere in a run, again and again: what is served is whole, and the end is that of a run
nobody disturbed, row for row."""

import os
import random
import shutil
import time
from math import ceil

import pytest
import yaml
from fork_server import ForkServer
from observer import Observer
from small_corpus import write_corpus, write_document

SEED = int(os.environ.get("FAULTS_SEED") or random.randrange(1_000_000))
"""Printed by each test: `FAULTS_SEED` repeats what it did, as far as times can be repeated."""
KILLS = int(os.environ.get("FAULTS", "182"))
"""So many runs of the stages are killed; `FAULTS=2000` for a longer look."""
KILLS_A_ROUND = 30
KILLS_OF_THE_COMMAND = 3
KILLS_OF_A_STEP = 7
KILLS_OF_STEPS = 12
"""At least: a step that goes on where a killed one stopped may end before its next moment."""
MOMENT = 1_700_000_000

STAGES_ONLY = {
    "collections": {"docs": {"path": "docs", "shards": 2, "settle_seconds": 0}},
    "chunkers": {"recursive-20@1": {"kind": "recursive", "max_tokens": 20}},
    "retrieval_profiles": {
        "everything": {"search": "hybrid", "k": 1000, "candidates": 1000, "merge": False}
    },
    "strategies": {"one": {"chunker": "recursive-20@1", "model": "hash", "profile": "everything"}},
}


NO_LOGS = {
    "telemetry": {"enabled": False},
    "compute_logs": {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    },
}
"""Dagster's settings: otherwise it follows what each step prints with four more processes."""


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


@pytest.fixture(scope="module")
def observer():
    with Observer() as observer:
        yield observer


@pytest.fixture
def moments():
    print(f"FAULTS_SEED={SEED}")
    return random.Random(SEED)


def test_killed_runs_serve_whole_content_and_end_as_a_calm_one(tmp_path, observer, moments):
    calm, killed, begun = (tmp_path / name for name in ("calm", "killed", "begun"))
    for root in (calm, killed):
        write_corpus(root, {}, **STAGES_ONLY)
        for number in range(14):
            write(root, f"{number}.md", document(number), 0)
    author = Author([calm, killed], SEED)
    kills, served = 0, {}
    with ForkServer("stages", tmp_path / "output") as stages:
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
    file = write_corpus(
        root,
        {},
        **STAGES_ONLY,
        questions=["gold.yaml"],
        comparison={"metric": "recall@5", "resamples": 200},
    )
    for number in range(14):
        write(root, f"{number}.md", document(number), 0)
    home = root / ".corpus" / "dagster"
    home.mkdir(parents=True)
    (home / "dagster.yaml").write_text(yaml.safe_dump(NO_LOGS))
    return file


class Killed:
    """An incremental run of the command that is begun again and again from one state, and killed.

    `expected` is what it ends with if nobody disturbs it, `steps` how many seconds of CPU each of
    its steps uses, `seconds` how long all of it takes, by the arguments.
    """

    def __init__(self, runs, observer, file, seed):
        self.runs, self.observer, self.file = runs, observer, file
        self.workspace, self.before = file.parent / ".corpus", file.parent / "before"
        first = runs.run("--promote-first")
        served = observer.served(file)
        Author([file.parent], seed).work()
        shutil.copytree(self.workspace, self.before)
        begun = time.monotonic()
        self.steps = runs.run_killing_steps("--steps")
        self.seconds = {(): first.seconds, ("--steps",): time.monotonic() - begun}
        self.expected, self.whole = observer.content(file), [served, observer.served(file)]

    def from_the_start(self):
        self.runs.wait_for_steps()
        shutil.rmtree(self.workspace)
        shutil.copytree(self.before, self.workspace)
        self.observer.reopen(self.file)

    def serves_whole_content(self):
        assert self.observer.served(self.file) in self.whole

    def ends_as_expected(self):
        self.runs.run()
        self.runs.wait_for_steps()
        assert self.observer.content(self.file) == self.expected
        assert self.observer.served(self.file) == self.whole[1]

    def kill_runs(self, times, moments, *arguments):
        """Runs killed alone and with the processes of their steps, in turn."""
        while times:
            moment = moments.uniform(0, self.seconds[arguments])
            run = self.runs.run(*arguments, kill_after=moment, with_steps=times % 2 == 0)
            self.serves_whole_content()
            times -= run.was_killed
            if not run.was_killed:
                self.from_the_start()
        self.ends_as_expected()

    def kill_steps(self, times, moments):
        """One run, each of its steps killed at up to so many moments; how many were."""
        kills = []

        def one_more():
            kills.append(1)
            self.serves_whole_content()

        drawn = [
            sorted((moments.uniform(0, seconds) for _ in range(times)), reverse=True)
            for seconds in self.steps
        ]
        self.runs.run_killing_steps("--steps", moments=drawn, killed=one_more)
        self.ends_as_expected()
        return len(kills)


def test_the_command_killed_again_and_again_ends_as_if_nothing_had_happened(
    tmp_path, observer, moments
):
    """In one process and with one for every step; a step may outlive its run, and write beside the
    next."""
    file = write_inputs(tmp_path / "corpus")
    environment = {"CORPUS_CONFIG": str(file)}
    with ForkServer("multiprocess", tmp_path / "output", **environment) as runs:
        killed = Killed(runs, observer, file, SEED)
        assert "leaderboard" in killed.expected
        for arguments in ((), ("--steps",)):
            killed.from_the_start()
            killed.kill_runs(KILLS_OF_THE_COMMAND, moments, *arguments)
        kills = 0
        while kills < KILLS_OF_STEPS:
            killed.from_the_start()
            times = ceil(2 * (KILLS_OF_STEPS - kills) / len(killed.steps))  # half may end before
            kills += killed.kill_steps(min(times, KILLS_OF_A_STEP), moments)
            print(f"{kills} steps were killed")
        assert "Nothing changed" in runs.run().output
