create table embedded_chunks (
    index_version varchar not null,
    chunk_id varchar not null,
    doc_id varchar not null,
    shard varchar not null,
    vec_key varchar,
    n_tokens bigint,
    n_windows bigint
);

comment on table embedded_chunks is 'One row per chunk that the vector table of an index version must hold. Key: index_version, chunk_id.';
comment on column embedded_chunks.index_version is 'Chunker version and embedding model: "recursive-400@1+e5-small".';
comment on column embedded_chunks.chunk_id is 'The chunk: chunks.chunk_id.';
comment on column embedded_chunks.doc_id is 'The document: documents.doc_id.';
comment on column embedded_chunks.shard is 'The part of the collection the document falls in.';
comment on column embedded_chunks.vec_key is 'Digest of the text as sent and the model: equal key, same vector, embedded once. NULL for a chunk that is only read.';
comment on column embedded_chunks.n_tokens is 'Tokens the model reads, its prefix and special tokens included.';
comment on column embedded_chunks.n_windows is 'In how many pieces the model read it; 1 means at once, nothing was cut off. 0 for a chunk that is only read.';
