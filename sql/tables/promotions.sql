create table promotions (
    event_id varchar primary key,
    recorded_at timestamptz not null,
    action varchar not null check (action in ('promote', 'rollback')),
    strategy varchar,
    previous varchar,
    verdict varchar,
    numbers json,
    reason varchar,
    forced boolean,
    overridden varchar[],
    requested_by varchar
);

comment on table promotions is 'Every change of the live strategy, never edited: the last one says what is live.';
comment on column promotions.event_id is 'Identifies the event.';
comment on column promotions.recorded_at is 'When it took effect.';
comment on column promotions.action is 'promote, or rollback to the strategy that was live before.';
comment on column promotions.strategy is 'The strategy that is live from then on.';
comment on column promotions.previous is 'The strategy that was live until then; NULL for the first.';
comment on column promotions.verdict is 'What the comparison with the strategy then live said: better, worse, cannot tell; first if there was none; NULL for a rollback.';
comment on column promotions.numbers is 'What the gate decided on, as JSON: $.difference, $.ci_low, $.ci_high, $.coverage, $.context_tokens, $.reindex_cost ...; NULL for a rollback.';
comment on column promotions.reason is 'Why, in the words of the person or the gate.';
comment on column promotions.forced is 'True if the gate said no and a person went ahead.';
comment on column promotions.overridden is 'What the gate had against it, if it was forced.';
comment on column promotions.requested_by is 'Who asked for it.';
