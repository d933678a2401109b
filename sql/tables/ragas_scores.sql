create table ragas_scores (
    strategy varchar not null,
    question_id varchar not null,
    metric varchar not null,
    judge varchar,
    judge_key varchar,
    status varchar not null,
    check (status in ('ok', 'error', 'not_applicable', 'stale', 'skipped')),
    value double check (value between 0 and 1 and not isnan(value)),
    n_judgements bigint,
    variance double check (variance >= 0),
    error_kind varchar,
    error varchar,
    n_statements bigint,
    n_supported bigint,
    calls bigint,
    cached_calls bigint,
    prompt_tokens bigint,
    completion_tokens bigint,
    latency_s double,
    -- Missing is missing: a failed judgement has no value, and only a failed one has none.
    check ((status = 'ok') = (value is not null)),
    check (variance is null or n_judgements > 1)
);

comment on table ragas_scores is 'What a judge model says of each answer. A judgement that failed is a row without a value, never a 0. Key: strategy, question_id, metric.';
comment on column ragas_scores.strategy is 'The strategy: strategies.strategy.';
comment on column ragas_scores.question_id is 'The question: gold_questions.question_id.';
comment on column ragas_scores.metric is 'faithfulness: share of the answer''s statements that the contexts support. context_recall: share of the reference answer''s statements that the contexts support. context_precision: how early the contexts stand that helped. factual_correctness: F1 of the claims of answer and reference answer. answer_relevancy: how like the question are the questions the answer answers.';
comment on column ragas_scores.judge is 'Model, host, ragas version, prompts, and their language if translated; the embedding model for answer_relevancy. Values of different judges are not comparable.';
comment on column ragas_scores.judge_key is 'Digest of judge, metric, number of judgements and the texts it reads: equal key, judgement reused.';
comment on column ragas_scores.status is 'ok; error (see error_kind); not_applicable (nothing to judge, such as an answer that abstains); stale (the question''s evidence is gone); skipped (no judge is configured, or the question is beyond the configured number).';
comment on column ragas_scores.value is 'From 0 to 1; NULL exactly when status is not ok.';
comment on column ragas_scores.n_judgements is 'Judgements behind value, their mean; NULL if value is 0 by definition, not by judgement.';
comment on column ragas_scores.variance is 'Sample variance of the judgements, the noise of the judge; that of value is variance / n_judgements. NULL of a single judgement.';
comment on column ragas_scores.error_kind is 'Short class of the failure: refused, truncated, invalid_output, timeout ...; also why nothing was judged: no_judge, max_questions, abstained, unanswerable ...';
comment on column ragas_scores.error is 'The failure in words.';
comment on column ragas_scores.n_statements is 'Statements the judge gave a verdict on, in all judgements.';
comment on column ragas_scores.n_supported is 'Verdicts of 1 among them.';
comment on column ragas_scores.calls is 'Calls made to the judge.';
comment on column ragas_scores.cached_calls is 'Calls answered from earlier results, at no cost.';
comment on column ragas_scores.prompt_tokens is 'Tokens sent, as the endpoint counted them; NULL if it did not say.';
comment on column ragas_scores.completion_tokens is 'Tokens received, as the endpoint counted them; NULL if it did not say.';
comment on column ragas_scores.latency_s is 'Seconds the judgement took.';
