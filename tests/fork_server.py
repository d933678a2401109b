"""A process that has imported everything and forks a child for every run.

Killing a run then costs the run, not the seconds of imports before it. Started as
`python tests/fork_server.py stages` it takes a corpus.yaml, and shards if not all, through the
library's stages; as `... materialize` it runs `python -m dagster_defs.materialize` for the
$CORPUS_CONFIG of its environment, as `... multiprocess` the same, or with `--steps` the same with
a process for every step.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
import warnings
from dataclasses import dataclass
from math import inf
from pathlib import Path

TESTS = Path(__file__).parent
LONGEST_RUN = 240
A_LITTLE = 0.005


def environment(**changes):
    """That of a run of one's own: no workspace, instance or endpoint of whoever runs the tests."""
    own = {
        **os.environ,
        "PYTHONPATH": f"{TESTS}:{TESTS.parent}",
        "DAGSTER_DISABLE_TELEMETRY": "yes",
        **changes,
    }
    for name in ("DAGSTER_HOME", "CORPUS_HOME", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        own.pop(name, None)
    return own


@dataclass(frozen=True)
class Run:
    """How a run ended: its exit status as `waitpid` has it, its time, and what it printed."""

    status: int
    seconds: float
    output: str

    @property
    def was_killed(self):
        return os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) == signal.SIGKILL


class ForkServer:
    """Runs its children to their end, or until they are killed."""

    def __init__(self, mode, output, **changes):
        """`output` is the file that what a run prints is kept in."""
        self.output = Path(output)
        self.process = subprocess.Popen(
            [sys.executable, __file__, mode],
            env=environment(**changes),
            cwd=TESTS.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # `select` must see all that was not read yet
        )
        word, *steps = self._line().split()
        assert word == "ready"
        self.steps = int(steps[0]) if steps else None

    def run(self, *arguments, kill_after=None, with_steps=False, fails=False):
        """One run, killed by SIGKILL after so many seconds if it has not ended before, alone or
        with the processes of its steps."""
        (pid,), begun = self._begin([arguments]), time.monotonic()
        limit = LONGEST_RUN if kill_after is None else kill_after
        if not select.select([self.process.stdout], [], [], limit)[0]:
            for process in (pid, *(self.running_steps() if with_steps else ())):
                _kill(process)
        (run,) = self._ended(begun, 1)
        if not fails and (kill_after is None or not run.was_killed):
            assert run.status == 0, run.output or f"no end after {LONGEST_RUN} s"
        return run

    def run_killing_steps(self, *arguments, moments=(), killed=lambda: None):
        """One run whose steps, one after the other, are killed when they have used as many seconds
        of CPU as the last of the `moments` left for them; without one, or where a step needs less,
        it is left alone. After each kill, `killed` is called.

        Returns how many seconds of CPU each step used in the attempt that ended.
        """
        moments = [[*of_step] for of_step in moments]
        begun, needed = time.monotonic(), []
        self._begin([arguments])
        for step in self._steps_of_the_run():
            left = moments[len(needed)] if len(needed) < len(moments) else []
            until = left.pop() if left else inf
            used = _seconds_used(step, until)
            if used >= until:
                _kill(step)
                killed()
            else:
                needed.append(used)
        (run,) = self._ended(begun, 1)
        assert run.status == 0, run.output
        return needed

    def _steps_of_the_run(self):
        """The process of each step as it begins, until the run has ended."""
        last = None
        while not select.select([self.process.stdout], [], [], A_LITTLE)[0]:
            running = self.running_steps()
            if running and running[-1] != last:
                last = running[-1]
                yield last

    def running_steps(self):
        """Processes of steps, of this run or of one that was killed without them."""
        children = Path(f"/proc/{self.steps}/task/{self.steps}/children")
        return [pid for pid in map(int, children.read_text().split()) if not _ends(pid, 0)]

    def wait_for_steps(self):
        """Until those that outlived their run have ended."""
        for step in self.running_steps():
            assert _ends(step, LONGEST_RUN)

    def run_together(self, *arguments):
        """Several runs begun at once, each with its arguments, until all have ended."""
        pids, begun = self._begin(arguments), time.monotonic()
        if not select.select([self.process.stdout], [], [], LONGEST_RUN)[0]:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"{len(pids)} runs have not ended after {LONGEST_RUN} s")
        runs = self._ended(begun, len(pids))
        assert {run.status for run in runs} == {0}, runs[0].output
        return runs

    def _begin(self, arguments):
        request = {"runs": [[str(a) for a in some] for some in arguments]}
        request["output"] = str(self.output)
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        return [int(pid) for pid in self._line().split()]

    def _ended(self, begun, count):
        statuses = [int(status) for status in self._line().split()]
        assert len(statuses) == count
        seconds, output = time.monotonic() - begun, self.output.read_text(errors="replace")
        return [Run(status, seconds, output) for status in statuses]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate()

    def _line(self):
        line = self.process.stdout.readline().decode().strip()
        assert line, "the fork server is gone"
        return line


def _ends(process, seconds):
    """Whether a process ends within so many seconds."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


def _seconds_used(process, until):
    """Seconds of CPU that a process has used when it ends, or when they are so many: unlike the
    time of day they do not depend on what else the machine does."""
    used, begun = 0.0, time.monotonic()
    while used < until and not _ends(process, A_LITTLE):
        assert time.monotonic() - begun < LONGEST_RUN
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


def _kill(process):
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def update(file, *shards):
    """Every stage of these shards, or of all."""
    from small_corpus import SmallCorpus

    from chunking_assets.chunk_embeddings.build import update_index
    from chunking_assets.chunk_sets.build import update_chunk_sets
    from chunking_assets.parsed_elements.build import update_documents

    corpus = SmallCorpus(Path(file))
    if not shards:
        corpus.update(confirm_deletions=True)
        return
    config, workspace = corpus.config, corpus.workspace
    for shard in shards:
        name = config.shards()[shard]
        update_documents(
            workspace, shard, name, config.collections[name], config.root, confirm_deletions=True
        )
        update_chunk_sets(workspace, shard, [*config.chunker_versions.values()], corpus.models)
    for index in config.index_versions.values():
        update_index(workspace, index, shards, lambda _: corpus.embedder)


def warm_up():
    """Load what takes longest to load, so that kills fall on the work and not on that."""
    import duckdb  # noqa: F401
    import lance  # noqa: F401
    import lancedb  # noqa: F401
    import polars  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import small_corpus  # noqa: F401

    from chunking_assets.parsed_elements.language import detect_language
    from chunking_assets.parsed_elements.parse import parse_document

    text = "# A title\n\n" + 20 * "Some words of a language that can be told. "
    parsed = parse_document(text.encode(), "a.md", "text/markdown")
    assert detect_language(text, parsed.elements)


def _loaded(mode):
    """What a child does with the arguments of a request, with everything imported that it needs."""
    warm_up()
    if mode == "stages":
        return update

    if mode == "multiprocess":
        from multiprocess_run import main
    else:
        from dagster_defs.materialize import main
    from dagster_defs import definitions  # noqa: F401

    def materialize(*arguments):
        sys.argv = ["materialize", *arguments]
        return main()

    return materialize


def _steps(mode):
    """The process that those of steps are forked from, if runs have any."""
    if mode != "multiprocess":
        return []
    from multiprocess_run import start_steps

    answers = os.dup(1)
    os.dup2(2, 1)  # answers are not for steps to print between
    steps = start_steps()
    os.dup2(answers, 1)
    return [steps]


def _child(do, arguments, output):
    """One run, in the process just forked; never returns."""
    os.setsid()  # Ctrl-C is for whoever runs the tests
    status = 1
    try:
        written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for descriptor in (1, 2):
            os.dup2(written, descriptor)
        status = do(*arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status or 0)


def _serve(mode):
    # Nothing of LanceDB runs in the process that forks.
    warnings.filterwarnings("ignore", message=".*fork")
    do = _loaded(mode)
    print("ready", *_steps(mode), flush=True)
    for line in sys.stdin:
        request, pids = json.loads(line), []
        Path(request["output"]).write_bytes(b"")
        for arguments in request["runs"]:
            pids.append(os.fork())
            if pids[-1] == 0:
                _child(do, arguments, request["output"])
        print(*pids, flush=True)
        print(*(os.waitpid(pid, 0)[1] for pid in pids), flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1])
