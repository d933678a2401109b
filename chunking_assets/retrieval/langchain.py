"""The reader as a LangChain retriever: `chunking-assets[langchain]`.

retriever = LangChainRetriever(reader=open_live(Workspace(".corpus")))
retriever.invoke("How long do refunds take?")
"""

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import SkipValidation

from chunking_assets.retrieval.filters import Filters
from chunking_assets.retrieval.hit import Passage
from chunking_assets.retrieval.reader import Answering


class LangChainRetriever(BaseRetriever):
    """A passage a document, best first. `reader` is that of the live strategy or of a named one;
    `filters` hold for every question."""

    reader: SkipValidation[Answering]
    filters: Filters | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [_document(passage) for passage in self.reader.search(query, self.filters)]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [_document(passage) for passage in await self.reader.asearch(query, self.filters)]


def _document(passage: Passage) -> Document:
    return Document(page_content=passage.text, metadata=passage.metadata())
