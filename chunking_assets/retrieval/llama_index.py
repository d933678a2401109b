"""The reader as a LlamaIndex retriever: `chunking-assets[llama-index]`.

retriever = LlamaIndexRetriever(open_live(Workspace(".corpus")))
retriever.retrieve("How long do refunds take?")
"""

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from chunking_assets.retrieval.filters import Filters
from chunking_assets.retrieval.hit import Passage
from chunking_assets.retrieval.reader import Answering


class LlamaIndexRetriever(BaseRetriever):
    """A passage a node, best first. `reader` is that of the live strategy or of a named one;
    `filters` hold for every question."""

    def __init__(self, reader: Answering, filters: Filters | None = None) -> None:
        super().__init__()
        self._reader, self._filters = reader, filters

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(p) for p in self._reader.search(query_bundle.query_str, self._filters)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = await self._reader.asearch(query_bundle.query_str, self._filters)
        return [_node(passage) for passage in found]


def _node(passage: Passage) -> NodeWithScore:
    start, end = passage.spans[0][0], passage.spans[-1][1]
    node = TextNode(
        id_=passage.chunk_ids[0],
        text=passage.text,
        start_char_idx=start,
        end_char_idx=end,
        metadata=passage.metadata(),
    )
    return NodeWithScore(node=node, score=passage.score)
