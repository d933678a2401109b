-- What does each index hold, and how much of it does the live index hold already?
-- Equal vec_key means one vector, embedded once and shared through the cache.
with
live_vectors as (
    select distinct e.vec_key
    from index_versions as i
    join embedded_chunks as e on e.index_version = i.index_version
    where i.is_live
)
select
    e.index_version,
    count(*) as chunks,
    count(distinct e.vec_key) as vectors,
    count(distinct e.vec_key) filter (where l.vec_key is not null) as shared_with_live,
    coalesce(sum(e.n_tokens) filter (where l.vec_key is null), 0) as tokens_of_its_own,
    count(*) filter (where e.n_windows > 1) as longer_than_the_model_reads
from embedded_chunks as e
left join live_vectors as l on l.vec_key = e.vec_key
group by e.index_version
order by tokens_of_its_own, e.index_version;
