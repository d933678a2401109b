create table strategies (
    strategy varchar primary key,
    chunker_version varchar not null,
    chunker_kind varchar,
    embedding_model varchar not null,
    index_version varchar not null,
    profile varchar,
    search varchar,
    k bigint,
    settings json,
    strategy_digest varchar not null
);

comment on table strategies is 'One row per strategy declared in corpus.yaml: how a question is answered.';
comment on column strategies.strategy is 'Name of the strategy.';
comment on column strategies.chunker_version is 'How documents are cut, name@n: "recursive-400@1".';
comment on column strategies.chunker_kind is 'The chunking method behind the chunker version.';
comment on column strategies.embedding_model is 'Name of the embedding model in corpus.yaml.';
comment on column strategies.index_version is 'The index it asks, which strategies share: "recursive-400@1+e5-small".';
comment on column strategies.profile is 'Name of the retrieval profile in corpus.yaml.';
comment on column strategies.search is 'vector, bm25 or hybrid (both, fused).';
comment on column strategies.k is 'The most chunks a question is answered with.';
comment on column strategies.settings is 'All settings as JSON: $.chunker, $.embedding_model and $.profile.';
comment on column strategies.strategy_digest is 'Equal when the same question over the same corpus is answered in the same way.';
