create view runs as
select
    run_id,
    min(recorded_at - to_microseconds((coalesce(seconds, 0) * 1000000)::bigint)) as started_at,
    max(recorded_at) as finished_at,
    list_sort(list_distinct(list(asset))) as assets,
    count(*) as parts,
    -- Each chunker version counts a document again: what was done, not how many there are.
    coalesce(sum(documents_added), 0)::bigint as documents_added,
    coalesce(sum(documents_changed), 0)::bigint as documents_changed,
    coalesce(sum(documents_removed), 0)::bigint as documents_removed,
    coalesce(sum(documents_failed), 0)::bigint as documents_failed,
    coalesce(sum(chunks_redone), 0)::bigint as chunks_redone,
    coalesce(sum(vectors_embedded), 0)::bigint as vectors_embedded,
    coalesce(sum(vectors_reused), 0)::bigint as vectors_reused,
    coalesce(sum(tokens_embedded), 0)::bigint as tokens_embedded,
    coalesce(sum(seconds), 0) as seconds
from builds
where run_id is not null
group by run_id
order by finished_at desc, run_id;

comment on view runs is 'One row per Dagster run that changed documents, chunks or vectors, the newest first. A run that found nothing to do has none.';
comment on column runs.run_id is 'The Dagster run; its page in the UI is /runs/ and this.';
comment on column runs.started_at is 'When the first of its parts was begun, as far as the log says.';
comment on column runs.finished_at is 'When the last of its parts was finished.';
comment on column runs.assets is 'What was built: parsed_elements, chunk_sets, chunk_embeddings.';
comment on column runs.parts is 'Parts (partitions) that changed.';
comment on column runs.documents_added is 'Documents that were new, counted once a part.';
comment on column runs.documents_changed is 'Documents done again, counted once a part.';
comment on column runs.documents_removed is 'Documents that were gone, counted once a part.';
comment on column runs.documents_failed is 'Documents without a text, counted once a part.';
comment on column runs.chunks_redone is 'Chunks cut.';
comment on column runs.vectors_embedded is 'Vectors computed.';
comment on column runs.vectors_reused is 'Vectors taken from the cache.';
comment on column runs.tokens_embedded is 'Tokens sent to embedding models.';
comment on column runs.seconds is 'Seconds of work of all parts together.';
