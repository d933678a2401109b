create table answers (
    strategy varchar not null,
    question_id varchar not null,
    answer_key varchar,
    answerer varchar,
    answer_kind varchar check (answer_kind in ('generated', 'extractive')),
    status varchar not null check (status in ('ok', 'error', 'skipped')),
    answer varchar,
    abstained boolean,
    sentences json,
    issues varchar[],
    numbers_not_in_context varchar[],
    names_not_in_context varchar[],
    quotes_not_in_context varchar[],
    lexical_support double check (lexical_support between 0 and 1),
    error_kind varchar,
    error varchar,
    prompt_tokens bigint,
    completion_tokens bigint,
    check ((status = 'ok') = (answer is not null))
);

comment on table answers is 'The answer given from what a strategy retrieved, and what can be said of it without a judge. Key: strategy, question_id.';
comment on column answers.strategy is 'The strategy: strategies.strategy.';
comment on column answers.question_id is 'The question: gold_questions.question_id.';
comment on column answers.answer_key is 'Digest of question, contexts, prompt and model: equal key, answer reused.';
comment on column answers.answerer is 'The model that answered and where it runs, or the extractive answerer.';
comment on column answers.answer_kind is 'generated: a language model wrote it; extractive: sentences of the contexts, copied without a model. Scores of the two are not comparable.';
comment on column answers.status is 'ok; error (see error_kind); skipped (not asked: see error_kind).';
comment on column answers.answer is 'The answer; NULL unless status is ok, empty if it abstained.';
comment on column answers.abstained is 'True if the answerer said that the contexts do not hold the answer.';
comment on column answers.sentences is 'Each sentence with its sources (p1 is the first context) and the quote that proves it.';
comment on column answers.issues is 'What is wrong with its citations after one repair: unknown_source, uncited, quote_not_in_source, abstained_with_text; empty if nothing is.';
comment on column answers.numbers_not_in_context is 'Numbers of the answer that stand in no context. A reason to look, not a verdict; NULL without an answer.';
comment on column answers.names_not_in_context is 'Words with a capital inside a sentence that stand in no context; NULL without an answer.';
comment on column answers.quotes_not_in_context is 'Quotations that stand in no context; NULL without an answer.';
comment on column answers.lexical_support is 'Heuristic, on request: share of the answer''s sentences whose words stand together in a context. Not a judgement, not comparable with one; NULL unless asked for.';
comment on column answers.error_kind is 'Short class of the failure: refused, truncated, timeout ...; or why it was not asked: no_judge, stale, max_questions ...';
comment on column answers.error is 'The failure in words.';
comment on column answers.prompt_tokens is 'Tokens sent, as the endpoint counted them; NULL if it did not say.';
comment on column answers.completion_tokens is 'Tokens received, as the endpoint counted them; NULL if it did not say.';
