create table answers (
    strategy varchar not null,
    question_id varchar not null,
    answer_key varchar,
    answerer varchar,
    status varchar not null,
    answer varchar,
    abstained boolean,
    issues varchar[],
    error_kind varchar,
    error varchar,
    prompt_tokens bigint,
    completion_tokens bigint
);

comment on table answers is 'The answer a language model wrote from what a strategy retrieved. Key: strategy, question_id.';
comment on column answers.strategy is 'The strategy: strategies.strategy.';
comment on column answers.question_id is 'The question: gold_questions.question_id.';
comment on column answers.answer_key is 'Digest of question, contexts, prompt and model: equal key, answer reused.';
comment on column answers.answerer is 'The model that answered and where it runs.';
comment on column answers.status is 'ok; error (see error_kind); skipped (not asked: see error_kind).';
comment on column answers.answer is 'The answer; NULL unless status is ok.';
comment on column answers.abstained is 'True if the model said that the contexts do not hold the answer.';
comment on column answers.issues is 'What is wrong with the form of the answer, such as a citation of a context that was not given.';
comment on column answers.error_kind is 'Short class of the failure: refused, truncated, timeout ...; or why it was not asked: no_judge, stale, max_questions ...';
comment on column answers.error is 'The failure in words.';
comment on column answers.prompt_tokens is 'Tokens sent, as the endpoint counted them; NULL if it did not say.';
comment on column answers.completion_tokens is 'Tokens received, as the endpoint counted them; NULL if it did not say.';
