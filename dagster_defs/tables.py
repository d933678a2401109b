"""Column schemas and column lineage in the UI, from the same SQL that defines the analysts' tables.

Lineage is declared, not guessed: from a chunk to the elements it was cut from, to the bytes of its
document; from a vector and from a score back to chunks and questions.
"""

from typing import Any

import dagster as dg

from evals.database import table_columns

ALSO = {"documents": ("elements",)}
"""Tables of the same asset, shown with their name before the column."""

BYTES = ("raw_documents", "doc_rev")
LINEAGE: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "documents": {
        "doc_id": (("raw_documents", "doc_id"),),
        "path": (("raw_documents", "doc_id"),),
        "doc_rev": (BYTES,),
        "size": (("raw_documents", "size"),),
        "modified_at": (("raw_documents", "modified_at"),),
        **dict.fromkeys(
            (
                "media_type",
                "status",
                "parse_key",
                "text_sha",
                "elements_sha",
                "n_chars",
                "language",
            ),
            (BYTES,),
        ),
        "elements.doc_id": (("raw_documents", "doc_id"),),
        **dict.fromkeys(
            (
                "elements.kind",
                "elements.start_char",
                "elements.end_char",
                "elements.heading_path",
                "elements.attributes",
            ),
            (BYTES,),
        ),
    },
    "chunks": {
        "chunker_version": (("chunker_versions", "name"),),
        "chunk_id": (
            ("chunker_versions", "name"),
            ("parsed_elements", "doc_id"),
            ("parsed_elements", "text_sha"),
        ),
        "doc_id": (("parsed_elements", "doc_id"),),
        "start_char": (("parsed_elements", "elements.start_char"),),
        "end_char": (("parsed_elements", "elements.end_char"),),
        "text": (("parsed_elements", "text_sha"),),
        "prefix": (("parsed_elements", "elements.heading_path"),),
        "heading_path": (("parsed_elements", "elements.heading_path"),),
        "budget": (("chunker_versions", "max_tokens"), ("parsed_elements", "language")),
        "chunkset_key": (
            ("parsed_elements", "text_sha"),
            ("parsed_elements", "elements_sha"),
            ("chunker_versions", "digest"),
        ),
    },
    "embedded_chunks": {
        "index_version": (("chunk_sets", "chunker_version"),),
        "chunk_id": (("chunk_sets", "chunk_id"),),
        "doc_id": (("chunk_sets", "doc_id"),),
        "vec_key": (("chunk_sets", "prefix"), ("chunk_sets", "text")),
        "n_tokens": (("chunk_sets", "prefix"), ("chunk_sets", "text")),
    },
    "retrieval_scores": {
        "question_id": (("gold_questions", "question_id"),),
        "value": (("chunk_embeddings", "chunk_id"), ("gold_questions", "question_id")),
    },
    "strategy_comparisons": {
        "strategy": (("retrieval_scores", "strategy"),),
        "mean": (("retrieval_scores", "value"),),
        "difference": (("retrieval_scores", "value"),),
        "verdict": (("retrieval_scores", "value"),),
    },
}
"""Table -> column -> the columns of other assets it is made from."""


def table_metadata(table: str) -> dict[str, Any]:
    """The table's name, its columns with types and comments, and what they are made from."""
    columns = [(column.name, column) for column in table_columns(table)]
    for other in ALSO.get(table, ()):
        columns += [(f"{other}.{column.name}", column) for column in table_columns(other)]
    metadata = {
        "dagster/table_name": f"evals.{table}",
        "dagster/column_schema": dg.TableSchema(
            [
                dg.TableColumn(name, column.type, description=column.comment)
                for name, column in columns
            ]
        ),
    }
    if table in LINEAGE:
        metadata["dagster/column_lineage"] = dg.TableColumnLineage(
            {
                column: [dg.TableColumnDep(dg.AssetKey(asset), source) for asset, source in sources]
                for column, sources in LINEAGE[table].items()
            }
        )
    return metadata
