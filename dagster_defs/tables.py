"""Column schemas in the UI, from the same SQL that defines the analysts' tables."""

from typing import Any

import dagster as dg

from evals.database import table_columns


def table_metadata(table: str) -> dict[str, Any]:
    """The table's name, and its columns with types and comments, as definition metadata."""
    return {
        "dagster/table_name": f"evals.{table}",
        "dagster/column_schema": dg.TableSchema(
            [
                dg.TableColumn(name, kind, description=comment)
                for name, kind, comment in table_columns(table)
            ]
        ),
    }
