create view live_history as
with
-- An event ends the time of the one before it.
terms as (
    select
        *,
        lead(recorded_at) over (order by recorded_at, event_id) as next_at
    from promotions
)
select
    strategy,
    recorded_at as live_from,
    next_at as live_until,
    (epoch(next_at) - epoch(recorded_at)) / 3600 as hours_live,
    action,
    previous,
    verdict,
    forced,
    reason,
    requested_by
from terms
order by recorded_at, event_id;

comment on view live_history is 'Which strategy served when, and how it came to.';
comment on column live_history.strategy is 'The strategy that served.';
comment on column live_history.live_from is 'From when.';
comment on column live_history.live_until is 'Until when; NULL for the one that is live.';
comment on column live_history.hours_live is 'Length of that time in hours; NULL for the one that is live.';
comment on column live_history.action is 'promote or rollback.';
comment on column live_history.previous is 'What served before.';
comment on column live_history.verdict is 'What the comparison said when it was promoted.';
comment on column live_history.forced is 'True if the gate said no and a person went ahead.';
comment on column live_history.reason is 'Why.';
comment on column live_history.requested_by is 'Who asked for it.';
