-- How much work did the changes of each day cause, and how much did not have to be done?
select
    date_trunc('day', recorded_at) as day,
    asset,
    count(*) as builds,
    sum(documents_added) as added,
    sum(documents_changed) as changed,
    sum(documents_removed) as removed,
    sum(documents_unchanged) as unchanged,
    sum(vectors_embedded) as embedded,
    sum(vectors_reused) as reused,
    round(sum(seconds), 1) as seconds
from builds
group by day, asset
order by day desc, asset;
