"""What must be cheap at full size costs little more than in proportion: CPU seconds, all threads.

The budgets themselves, 30 s for 1,000 questions on six strategies and 3 s for publishing a million
rows, are the benchmarks' to show; a machine's speed is none of a test's business.
"""

import time

from benchmarks import comparison, publication
from chunking_assets.workspace import Workspace
from evals.database import publish
from evals.ragas_scores.build import JUDGED
from evals.strategy_comparison.compare import compare


def cpu_seconds(work):
    """The least of two, for what else the process does."""

    def once():
        start = time.process_time()
        work()
        return time.process_time() - start

    return min(once(), once())


def test_four_times_the_questions_cost_no_more_than_five_times_as_much():
    """In proportion is 4, less what is done once; each with each would be 16."""

    def compared(questions):
        scores, clusters, slices = comparison.invented(questions, 6)
        return cpu_seconds(
            lambda: compare(
                scores, clusters, "strategy-0", comparison.PRIMARY,
                judged=JUDGED, slices=slices, resamples=300,
            )
        )  # fmt: skip

    compared(50)  # loads what is loaded once
    assert compared(1000) < 5 * compared(250)


def test_ten_times_the_rows_cost_no_more_than_four_times_as_much(tmp_path):
    """Most of a small publication, its views, is the same for any number of rows: 1.3 times."""

    def published(rows):
        workspace = Workspace(tmp_path / str(rows))
        for table, frame in publication.invented(rows).items():
            workspace.table(table).replace(frame, version="1")
        start = time.process_time()
        assert sum(publish(workspace).rows.values()) >= rows
        return time.process_time() - start

    published(100)
    assert published(100_000) < 4 * published(10_000)
