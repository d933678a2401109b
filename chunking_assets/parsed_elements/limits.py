"""What one document may cost before reading it is given up.

A document of a team is small, and one made to take the machine down is not: the defaults are far
above the first and far below the second.
"""

from pydantic import BaseModel, ConfigDict, Field


class Limits(BaseModel):
    """`parsing:` in corpus.yaml. What of a document lies beyond is told by its status.

    `seconds` and `memory_mb` (in 10^6 bytes, over what an idle reader takes) bound the process
    that reads a file; `pages` those read of a PDF, slides of a presentation and sheets of a
    workbook; `unpacked_mb` and `members` what a file that is an archive may hold, `expansion` how
    many times its own size (asked only of what unpacks to more than 20 MB).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    seconds: float = Field(default=60, gt=0, le=3600)
    memory_mb: int = Field(default=1000, ge=16)
    pages: int = Field(default=3000, ge=1)
    unpacked_mb: int = Field(default=500, ge=1)
    expansion: int = Field(default=100, ge=2)
    members: int = Field(default=10_000, ge=1)


DEFAULTS = Limits()
