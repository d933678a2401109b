create table declared_indexes (
    index_version varchar primary key,
    chunker_version varchar not null,
    chunker_kind varchar,
    embedding_model varchar not null,
    model_kind varchar,
    precision varchar not null,
    dimensions bigint,
    revision varchar,
    fingerprint varchar
);

comment on table declared_indexes is 'One row per index version that a declared strategy asks for. The view index_versions says what each holds.';
comment on column declared_indexes.index_version is 'Chunker version, embedding model, and the precision unless it is float32: "recursive-400@1+e5-small".';
comment on column declared_indexes.chunker_version is 'How documents are cut: chunks.chunker_version.';
comment on column declared_indexes.chunker_kind is 'The chunking method behind the chunker version.';
comment on column declared_indexes.embedding_model is 'Name of the embedding model in corpus.yaml.';
comment on column declared_indexes.model_kind is 'The embedder behind that name.';
comment on column declared_indexes.precision is 'What a number of a vector is stored as: float32, float16 or int8.';
comment on column declared_indexes.dimensions is 'Numbers in a vector, as stored; NULL if nothing is stored yet.';
comment on column declared_indexes.revision is 'Which weights the model had when it was first used; NULL if it never was.';
comment on column declared_indexes.fingerprint is 'Digest of the model as it runs: equal fingerprint, equal vectors. NULL if it was never used.';
