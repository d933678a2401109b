create table retrieved_chunks (
    strategy varchar not null,
    question_id varchar not null,
    rank bigint not null,
    chunk_id varchar not null,
    doc_id varchar not null,
    start_char bigint not null,
    end_char bigint not null,
    n_tokens bigint,
    score double,
    vector_score double,
    bm25_score double
);

comment on table retrieved_chunks is 'What each strategy retrieved for each question, best first. Key: strategy, question_id, rank.';
comment on column retrieved_chunks.strategy is 'The strategy: strategies.strategy.';
comment on column retrieved_chunks.question_id is 'The question: gold_questions.question_id.';
comment on column retrieved_chunks.rank is 'Place in the result, 1 is the best.';
comment on column retrieved_chunks.chunk_id is 'The chunk: chunks.chunk_id.';
comment on column retrieved_chunks.doc_id is 'The document: documents.doc_id.';
comment on column retrieved_chunks.start_char is 'First code point in the canonical text, from 0.';
comment on column retrieved_chunks.end_char is 'One past the last code point.';
comment on column retrieved_chunks.n_tokens is 'Tokens it adds to the context, counted by the index''s own model.';
comment on column retrieved_chunks.score is 'What it was ranked by. Compare within one question only.';
comment on column retrieved_chunks.vector_score is 'Cosine similarity to the question; NULL where the profile asks no vectors (bm25).';
comment on column retrieved_chunks.bm25_score is 'BM25 score; NULL if the full-text search did not return it.';
