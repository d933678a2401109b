create view index_versions as
with
held as (
    select
        index_version,
        count(*) as chunks,
        count(distinct vec_key) as vectors,
        count(distinct doc_id) as documents,
        sum(n_tokens) as tokens,
        count(*) filter (where n_windows > 1) as longer_than_the_model_reads
    from embedded_chunks
    group by index_version
),
used as (
    select
        s.index_version,
        list(s.strategy order by s.strategy) as strategies,
        bool_or(h.strategy is not null) as is_live
    from strategies as s
    left join live_history as h on h.strategy = s.strategy and h.live_until is null
    group by s.index_version
),
-- Builds are logged by index version and shard.
built as (
    select regexp_replace(partition, '\|[^|]*$', '') as index_version, max(recorded_at) as at_last
    from builds
    where asset = 'chunk_embeddings'
    group by index_version
)
select
    coalesce(d.index_version, h.index_version) as index_version,
    d.index_version is not null as is_declared,
    coalesce(u.is_live, false) as is_live,
    u.strategies,
    split_part(coalesce(d.index_version, h.index_version), '+', 1) as chunker_version,
    d.chunker_kind,
    split_part(coalesce(d.index_version, h.index_version), '+', 2) as embedding_model,
    d.model_kind,
    d.precision,
    d.dimensions,
    d.revision,
    d.fingerprint,
    coalesce(h.chunks, 0) as chunks,
    coalesce(h.vectors, 0) as vectors,
    coalesce(h.documents, 0) as documents,
    coalesce(h.tokens, 0)::bigint as tokens,
    coalesce(h.longer_than_the_model_reads, 0) as longer_than_the_model_reads,
    b.at_last as last_built_at
from declared_indexes as d
full join held as h on h.index_version = d.index_version
left join used as u on u.index_version = d.index_version
left join built as b
    on b.index_version = coalesce(d.index_version, h.index_version)
order by is_live desc, index_version;

comment on view index_versions is 'One row per index version: what it is made with, what it holds, who uses it.';
comment on column index_versions.index_version is 'Chunker version, embedding model, and the precision unless it is float32: "recursive-400@1+e5-small".';
comment on column index_versions.is_declared is 'False for one that is held although no declared strategy asks for it any more.';
comment on column index_versions.is_live is 'True if the strategy that serves now is over it.';
comment on column index_versions.strategies is 'The declared strategies over it; NULL if there are none.';
comment on column index_versions.chunker_version is 'How documents are cut.';
comment on column index_versions.chunker_kind is 'The chunking method behind the chunker version.';
comment on column index_versions.embedding_model is 'The embedding model.';
comment on column index_versions.model_kind is 'The embedder behind its name.';
comment on column index_versions.precision is 'What a number of a vector is stored as: float32, float16 or int8; NULL if it is not declared any more.';
comment on column index_versions.dimensions is 'Numbers in a vector; NULL if nothing is stored yet.';
comment on column index_versions.revision is 'Which weights the model had when it was first used; NULL if it never was.';
comment on column index_versions.fingerprint is 'Digest of the model as it runs: equal fingerprint, equal vectors.';
comment on column index_versions.chunks is 'Chunks it holds, those that are only read included.';
comment on column index_versions.vectors is 'Distinct vectors among them: equal texts share one.';
comment on column index_versions.documents is 'Documents with at least one chunk in it.';
comment on column index_versions.tokens is 'Tokens of all its chunks, as the model counts.';
comment on column index_versions.longer_than_the_model_reads is 'Chunks that the model read in several pieces.';
comment on column index_versions.last_built_at is 'When a part of it last changed.';
