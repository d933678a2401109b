create view chunk_lineage as
with
-- The elements whose characters the chunk holds, at least one of them.
covered as (
    select
        c.chunk_id,
        list(e.ordinal order by e.ordinal) as elements,
        list_sort(list_distinct(list(e.kind))) as element_kinds
    from chunks as c
    join elements as e
        on e.doc_id = c.doc_id and e.start_char < c.end_char and e.end_char > c.start_char
    group by c.chunk_id
),
-- The log is by part: the last run that changed the part, whichever of its documents it changed.
last_build as (
    select
        asset,
        partition,
        arg_max(run_id, recorded_at) as run_id,
        max(recorded_at) as recorded_at
    from builds
    group by asset, partition
),
live as (
    select
        s.index_version,
        h.strategy,
        h.live_from
    from live_history as h
    join strategies as s on s.strategy = h.strategy
    where h.live_until is null
)
select
    c.chunk_id,
    c.text,
    c.doc_id,
    c.start_char,
    c.end_char,
    v.elements,
    v.element_kinds,
    c.heading_path,
    d.doc_rev,
    d.modified_at,
    d.parser,
    d.parse_key,
    c.chunker_version,
    c.chunkset_key,
    x.index_version,
    split_part(x.index_version, '+', 2) as embedding_model,
    x.vec_key,
    x.shard,
    p.run_id as parsed_by_run,
    p.recorded_at as parsed_at,
    k.run_id as chunked_by_run,
    k.recorded_at as chunked_at,
    b.run_id as embedded_by_run,
    b.recorded_at as embedded_at,
    l.strategy as live_strategy,
    l.live_from
from chunks as c
left join covered as v on v.chunk_id = c.chunk_id
left join documents as d on d.doc_id = c.doc_id
left join embedded_chunks as x on x.chunk_id = c.chunk_id
left join last_build as p on p.asset = 'parsed_elements' and p.partition = x.shard
left join last_build as k
    on k.asset = 'chunk_sets' and k.partition = c.chunker_version || '|' || x.shard
left join last_build as b
    on b.asset = 'chunk_embeddings' and b.partition = x.index_version || '|' || x.shard
left join live as l on l.index_version = x.index_version;

comment on view chunk_lineage is 'Where a chunk comes from and where it went: one row per chunk and index version that holds it. Ask for one chunk_id or doc_id.';
comment on column chunk_lineage.chunk_id is 'The chunk.';
comment on column chunk_lineage.text is 'Its text.';
comment on column chunk_lineage.doc_id is 'The document it is cut from.';
comment on column chunk_lineage.start_char is 'First code point in the canonical text, from 0.';
comment on column chunk_lineage.end_char is 'One past the last code point.';
comment on column chunk_lineage.elements is 'The elements it holds characters of: elements.ordinal, in order.';
comment on column chunk_lineage.element_kinds is 'What kinds of elements those are.';
comment on column chunk_lineage.heading_path is 'The headings above the chunk, outermost first.';
comment on column chunk_lineage.doc_rev is 'Which bytes of the document: documents.doc_rev.';
comment on column chunk_lineage.modified_at is 'Modification time of the file when it was read.';
comment on column chunk_lineage.parser is 'The format reader that gave the text.';
comment on column chunk_lineage.parse_key is 'Digest of bytes, parser, parser version and settings.';
comment on column chunk_lineage.chunker_version is 'The declaration that cut it.';
comment on column chunk_lineage.chunkset_key is 'Digest of the document''s text, its elements and the chunker.';
comment on column chunk_lineage.index_version is 'An index that holds it; NULL if none does yet.';
comment on column chunk_lineage.embedding_model is 'The model of that index.';
comment on column chunk_lineage.vec_key is 'Its vector: digest of the text as sent and the model; NULL for a chunk that is only read.';
comment on column chunk_lineage.shard is 'The part of the collection its document falls in.';
comment on column chunk_lineage.parsed_by_run is 'The Dagster run that last changed the documents of the shard.';
comment on column chunk_lineage.parsed_at is 'When it did.';
comment on column chunk_lineage.chunked_by_run is 'The run that last changed the chunks of the version in the shard.';
comment on column chunk_lineage.chunked_at is 'When it did.';
comment on column chunk_lineage.embedded_by_run is 'The run that last changed the vectors of the version in the shard.';
comment on column chunk_lineage.embedded_at is 'When it did.';
comment on column chunk_lineage.live_strategy is 'The live strategy, if it serves from that index; NULL otherwise.';
comment on column chunk_lineage.live_from is 'Since when that strategy is live.';
