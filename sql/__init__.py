"""The analysts' database as SQL: `tables/` (columns and what they mean), `views/`, `queries/`.

`evals.database` builds the published file from these texts; the Dagster UI shows the same column
comments. Column names are chosen so that no client has to quote them.
"""
