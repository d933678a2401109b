create table costs (
    recorded_at timestamptz not null,
    run_id varchar,
    asset varchar not null,
    partition varchar not null,
    strategy varchar,
    question_id varchar,
    work varchar not null,
    model varchar not null,
    tokens_sent bigint,
    tokens_received bigint,
    tokens_saved bigint,
    requests bigint not null,
    requests_saved bigint not null,
    retries bigint not null,
    seconds double,
    cost double,
    currency varchar,
    check ((cost is null) = (currency is null))
);

comment on table costs is 'What was sent to models, never edited: one row per run, part of the corpus, question and kind of work. What a run found done already is saved, and costs nothing.';
comment on column costs.recorded_at is 'When the work was finished.';
comment on column costs.run_id is 'The Dagster run.';
comment on column costs.asset is 'What was built: chunk_sets, chunk_embeddings, retrieval_scores or ragas_scores.';
comment on column costs.partition is 'Which part: "chunker_version|shard", "index_version|shard", or a strategy.';
comment on column costs.strategy is 'The strategy, where the work was for one alone; an index is shared by all strategies over it.';
comment on column costs.question_id is 'The gold question, for answers and judgements.';
comment on column costs.work is 'embed, embed_batch (what jobs of a batch API brought), embed_sentences (vectors that decide where a text is cut), embed_questions, chunk (a chat model that takes part in chunking), answer, or the judged metric.';
comment on column costs.model is 'The model, as corpus.yaml and its prices name it.';
comment on column costs.tokens_sent is 'Tokens the model read, by the count of the endpoint where there is one; NULL if it did not say.';
comment on column costs.tokens_received is 'Tokens the model wrote; NULL if the endpoint did not say.';
comment on column costs.tokens_saved is 'Tokens that a cache made unnecessary; NULL if nobody knows how many.';
comment on column costs.requests is 'Requests sent, repetitions included; batches of a model that runs here.';
comment on column costs.requests_saved is 'Replies of a chat model that were there already.';
comment on column costs.retries is 'Requests that repeated a failed one.';
comment on column costs.seconds is 'Seconds from the first request to the last answer.';
comment on column costs.cost is 'At the prices of the day; NULL without a price, which is not 0.';
comment on column costs.currency is 'Currency of the cost (ISO 4217); NULL without a cost.';
