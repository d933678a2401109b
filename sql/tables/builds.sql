create table builds (
    recorded_at timestamptz not null,
    run_id varchar,
    asset varchar not null,
    partition varchar,
    documents_added bigint,
    documents_changed bigint,
    documents_removed bigint,
    documents_unchanged bigint,
    documents_failed bigint,
    rows bigint,
    chunks_redone bigint,
    vectors_embedded bigint,
    vectors_reused bigint,
    tokens_embedded bigint,
    seconds double
);

comment on table builds is 'One row each time a part of the corpus was brought up to date: what was done, and what did not have to be.';
comment on column builds.recorded_at is 'When the work was finished.';
comment on column builds.run_id is 'The Dagster run.';
comment on column builds.asset is 'What was built: parsed_elements, chunk_sets, chunk_embeddings ...';
comment on column builds.partition is 'Which part: a shard, "chunker_version|shard", or a strategy.';
comment on column builds.documents_added is 'Documents that were new.';
comment on column builds.documents_changed is 'Documents done again because they or their settings changed.';
comment on column builds.documents_removed is 'Documents that are gone.';
comment on column builds.documents_unchanged is 'Documents for which nothing had to be done.';
comment on column builds.documents_failed is 'Documents without a text: see the view document_status.';
comment on column builds.rows is 'Rows the part holds now.';
comment on column builds.chunks_redone is 'Chunks cut in this build.';
comment on column builds.vectors_embedded is 'Vectors computed in this build.';
comment on column builds.vectors_reused is 'Vectors taken from the cache.';
comment on column builds.tokens_embedded is 'Tokens sent to the embedding model, in its own tokens.';
comment on column builds.seconds is 'Wall time of the build in seconds.';
