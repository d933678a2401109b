create view chunk_health as
select
    chunker_version,
    level,
    bool_and(searched) as searched,
    count(*) as chunks,
    count(distinct doc_id) as documents,
    count(*) / count(distinct doc_id) as chunks_per_document,
    avg(n_tokens) as mean_tokens,
    median(n_tokens) as median_tokens,
    min(n_tokens) as min_tokens,
    max(n_tokens) as max_tokens,
    count(*) filter (where over_budget) as over_budget,
    count(*) filter (where remark is not null) as with_a_remark,
    -- A hash, so that millions of texts are not held in memory to be compared.
    1 - count(distinct hash(text)) / count(*) as duplicate_share
from chunks
group by chunker_version, level
order by chunker_version, level;

comment on view chunk_health is 'What each chunker version made of the corpus, one row per size of chunk it cuts.';
comment on column chunk_health.chunker_version is 'The chunker version.';
comment on column chunk_health.level is 'Which of several sizes: chunks.level; 0 is the finest, or the only one.';
comment on column chunk_health.searched is 'False if chunks of this size are only read, in place of their children when those were found.';
comment on column chunk_health.chunks is 'Number of chunks.';
comment on column chunk_health.documents is 'Documents with at least one chunk.';
comment on column chunk_health.chunks_per_document is 'Mean chunks of a document that has any.';
comment on column chunk_health.mean_tokens is 'Mean tokens of a chunk, in the chunker''s own tokenizer.';
comment on column chunk_health.median_tokens is 'Median tokens of a chunk.';
comment on column chunk_health.min_tokens is 'Tokens of the smallest chunk.';
comment on column chunk_health.max_tokens is 'Tokens of the largest chunk.';
comment on column chunk_health.over_budget is 'Chunks larger than the declared budget because they could not be cut.';
comment on column chunk_health.with_a_remark is 'Chunks that came out otherwise than declared: chunks.remark says why.';
comment on column chunk_health.duplicate_share is 'Share of chunks that repeat the text of another one of the same size: 0 if all differ, 0.5 if each is there twice.';
