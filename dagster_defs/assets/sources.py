"""External assets: the documents people edit and the versions people declare.

Nothing here runs. A sensor reports a new version when the content behind a partition changed.
"""

import dagster as dg

from dagster_defs.partitions import chunker_versions, corpus_shards

OWNERS = ["team:search"]

raw_documents = dg.AssetSpec(
    "raw_documents",
    partitions_def=corpus_shards,
    group_name="documents",
    kinds={"file"},
    owners=OWNERS,
    description=(
        "The files below a collection's folder, one partition a shard. Its data version is the "
        "content of the shard: it changes when a document appears, vanishes or has other bytes. "
        "Reported by the sensor `watch_documents`."
    ),
)

declared_versions = dg.AssetSpec(
    "chunker_versions",
    partitions_def=chunker_versions,
    group_name="documents",
    kinds={"yaml"},
    owners=OWNERS,
    description=(
        "The chunker versions declared in corpus.yaml. The data version is the digest of the "
        "declaration, which never changes under its `name@n`."
    ),
)
