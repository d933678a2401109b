create table strategy_costs (
    strategy varchar primary key,
    index_version varchar not null,
    embedding_model varchar not null,
    vectors bigint not null,
    tokens bigint not null,
    bytes bigint not null,
    reindex_cost double,
    reindex_currency varchar,
    storage_cost_per_month double,
    storage_currency varchar
);

comment on table strategy_costs is 'What each declared strategy would cost at the prices of corpus.yaml. Strategies over one index version share it: its cost is each one''s, and nobody pays it twice.';
comment on column strategy_costs.strategy is 'The strategy.';
comment on column strategy_costs.index_version is 'Its index: chunker version and embedding model.';
comment on column strategy_costs.embedding_model is 'The embedding model.';
comment on column strategy_costs.vectors is 'Distinct vectors the index holds.';
comment on column strategy_costs.tokens is 'Tokens the model reads to compute them all.';
comment on column strategy_costs.bytes is 'Bytes of the index on disk, versions not cleaned yet included.';
comment on column strategy_costs.reindex_cost is 'Of embedding the whole index anew, by the batch API where the model''s batch_from is reached; NULL without a price, or where a chat model takes part in chunking.';
comment on column strategy_costs.reindex_currency is 'Its currency (ISO 4217).';
comment on column strategy_costs.storage_cost_per_month is 'Of keeping the index for a month; NULL without a price for storage.';
comment on column strategy_costs.storage_currency is 'Its currency (ISO 4217).';
