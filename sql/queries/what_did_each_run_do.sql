-- What did each run do, and how much did not have to be done? The newest first.
-- Add started_at, seconds and run_id to look one up in the Dagster UI.
select
    row_number() over (order by finished_at, run_id) as run,
    assets,
    parts,
    documents_added as added,
    documents_changed as changed,
    documents_removed as removed,
    chunks_redone,
    vectors_embedded as embedded,
    vectors_reused as reused
from runs
order by run desc;
