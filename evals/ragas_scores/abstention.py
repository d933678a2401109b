"""Abstaining as an outcome of its own: right where the documents do not say, wrong where they do.

A judge has nothing to say of an answer that was not given, so a strategy that abstains on what is
hard would look faithful. Here each question is right or wrong by one comparison, without a model.
"""

import polars as pl

ANSWERED, ABSTAINED = "answered_answerable", "abstained_unanswerable"
ABSTENTION = (ANSWERED, ABSTAINED)
"""The share of answerable questions that were answered, and of the others that were not."""


def abstention_scores(answers: pl.DataFrame, questions: pl.DataFrame) -> pl.DataFrame:
    """One row a question: `question_id, metric, status, value, error_kind`, value 1 if right.

    `answers` are those of one strategy, `questions` the gold questions. Where nothing was retrieved
    there was nobody to ask, which is an abstention too. Stale questions are left out. Empty where
    nothing was answered at all.
    """
    if (answers["status"] == "ok").sum() == 0:
        return pl.DataFrame(
            schema=dict.fromkeys(("question_id", "metric", "status"), pl.String)
            | {"value": pl.Float64, "error_kind": pl.String}
        )
    is_empty = pl.col("error_kind").eq_missing("no_contexts_retrieved")
    abstained = pl.when(is_empty).then(True).otherwise("abstained")
    answerable = pl.col("gold_status") != "unanswerable"
    known = is_empty | (pl.col("status") == "ok")
    asked = questions.filter(pl.col("status") != "stale")
    return answers.join(
        asked.select("question_id", gold_status="status"), on="question_id", maintain_order="left"
    ).select(
        "question_id",
        metric=pl.when(answerable).then(pl.lit(ANSWERED)).otherwise(pl.lit(ABSTAINED)),
        status=pl.when(known).then(pl.lit("ok")).otherwise("status"),
        value=pl.when(known).then((abstained != answerable).cast(pl.Float64)),
        error_kind=pl.when(~known).then("error_kind"),
    )
