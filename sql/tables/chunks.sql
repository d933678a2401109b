create table chunks (
    chunker_version varchar not null,
    chunk_id varchar not null,
    doc_id varchar not null,
    ordinal bigint not null,
    start_char bigint not null,
    end_char bigint not null,
    text varchar not null,
    prefix varchar,
    cleaned varchar,
    n_tokens bigint,
    n_chars bigint,
    heading_path varchar[],
    level bigint,
    parent_id varchar,
    searched boolean,
    budget bigint,
    over_budget boolean,
    remark varchar,
    text_sha varchar,
    chunkset_key varchar
);

comment on table chunks is 'One row per chunk of every chunker version: a span of a document''s canonical text. Key: chunk_id.';
comment on column chunks.chunker_version is 'Which declaration cut it, name@n: "recursive-400@1".';
comment on column chunks.chunk_id is 'Digest of chunker version, document and content: survives edits elsewhere in the document.';
comment on column chunks.doc_id is 'The document: documents.doc_id.';
comment on column chunks.ordinal is 'Position in the document, from 0.';
comment on column chunks.start_char is 'First code point in the canonical text, from 0.';
comment on column chunks.end_char is 'One past the last code point.';
comment on column chunks.text is 'The canonical text from start_char to end_char, unchanged.';
comment on column chunks.prefix is 'What is put before the text for retrieval, such as the headings above it; empty if nothing.';
comment on column chunks.cleaned is 'The text without its excluded spans, normalised: what is embedded of it. NULL where that is the text as it is.';
comment on column chunks.n_tokens is 'Tokens of what is embedded, prefix included, in the chunker''s own tokenizer, special tokens left out.';
comment on column chunks.n_chars is 'Length of the text in Unicode code points.';
comment on column chunks.heading_path is 'The headings above the chunk, outermost first.';
comment on column chunks.level is 'Which of several sizes the chunk is of; 0 is the finest, or the only one.';
comment on column chunks.parent_id is 'The chunk one level up that holds this one: chunks.chunk_id. NULL if there is none.';
comment on column chunks.searched is 'False for a chunk that is only read, in place of its children when they were found.';
comment on column chunks.budget is 'The most tokens the chunk could have had: of its version, in its language, at its level, on its route.';
comment on column chunks.over_budget is 'True for a chunk that cannot be cut small enough for the declared budget.';
comment on column chunks.remark is 'What came out otherwise than declared, and why; also which strategy a routed document took.';
comment on column chunks.text_sha is 'sha256 of what is embedded: equal texts have equal digests.';
comment on column chunks.chunkset_key is 'Digest of the document''s text, its elements and the chunker: equal key, equal chunks.';
