"""External assets: the documents people edit and the versions people declare.

Nothing here runs. A sensor reports a new version when the content behind a partition changed.
"""

import dagster as dg

from dagster_defs.partitions import CONFIG, chunker_versions, corpus_shards

OWNERS = list(CONFIG.owners)


def _columns(**described: str) -> dict[str, dg.TableSchema]:
    columns = [dg.TableColumn(name, description=text) for name, text in described.items()]
    return {"dagster/column_schema": dg.TableSchema(columns)}


raw_documents = dg.AssetSpec(
    "raw_documents",
    partitions_def=corpus_shards,
    group_name="documents",
    kinds={"file"},
    owners=OWNERS,
    metadata=_columns(
        doc_id="collection and path inside it; stays when the content changes",
        doc_rev="sha256 of the bytes",
        size="bytes",
        modified_at="when the file was last written",
    ),
    description=(
        "The files of a collection, in a folder, a bucket, a list of URLs or a git revision, one "
        "partition a shard. Its data version is the content of the shard: it changes when a "
        "document appears, vanishes or has other bytes, or, where reading takes a network, when "
        "its source says it may have. "
        "Reported by the sensor `watch_documents`."
    ),
)

declared_versions = dg.AssetSpec(
    "chunker_versions",
    partitions_def=chunker_versions,
    group_name="documents",
    kinds={"yaml"},
    owners=OWNERS,
    metadata=_columns(
        name="name@n, the key of the partition",
        kind="the strategy",
        max_tokens="the budget of a chunk",
        digest="of settings, implementation and tokenizer",
    ),
    description=(
        "The chunker versions declared in corpus.yaml. The data version is the digest of the "
        "declaration, which never changes under its `name@n`."
    ),
)
