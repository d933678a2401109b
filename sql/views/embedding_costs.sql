create view embedding_costs as
with
-- Partitions of several kinds name a chunker version as name@n somewhere.
worked as (
    select
        *,
        nullif(regexp_extract(partition, '[a-z0-9.-]+@[1-9][0-9]*'), '') as chunker_version
    from builds
)
select
    chunker_version,
    asset,
    count(*) as builds,
    coalesce(sum(vectors_embedded), 0) as vectors_embedded,
    coalesce(sum(vectors_reused), 0) as vectors_reused,
    coalesce(sum(vectors_reused), 0)
    / nullif(coalesce(sum(vectors_embedded), 0) + coalesce(sum(vectors_reused), 0), 0)
        as hit_rate,
    coalesce(sum(tokens_embedded), 0) as tokens_embedded,
    coalesce(sum(seconds), 0) as seconds
from worked
group by chunker_version, asset
order by tokens_embedded desc, chunker_version, asset;

comment on view embedding_costs is 'What each chunker version has cost to embed so far, and what the vector cache saved. Multiply tokens by your provider''s price.';
comment on column embedding_costs.chunker_version is 'The chunker version; NULL for work that belongs to none.';
comment on column embedding_costs.asset is 'What was built.';
comment on column embedding_costs.builds is 'Number of builds.';
comment on column embedding_costs.vectors_embedded is 'Vectors computed.';
comment on column embedding_costs.vectors_reused is 'Vectors taken from the cache.';
comment on column embedding_costs.hit_rate is 'vectors_reused over both; NULL if no vector was needed.';
comment on column embedding_costs.tokens_embedded is 'Tokens sent to the embedding model.';
comment on column embedding_costs.seconds is 'Wall time in seconds.';
