"""Errors for the person at the keyboard: what is wrong, where, and what to do about it."""


class CorpusError(Exception):
    """A condition that stops the work asked for; the message names the thing and the cure."""


class ConfigError(CorpusError):
    """corpus.yaml says something that cannot be meant."""

    def __init__(self, file: object, key: str, problem: str, cure: str) -> None:
        super().__init__(f"{file}: {key}: {problem}. {cure}".rstrip())
        self.file, self.key, self.problem, self.cure = file, key, problem, cure


class DeletionRefused(CorpusError):
    """A listing lost so many documents that deleting them needs a person's word."""
