"""What may be raised, and nothing else by our own hand. Told apart by type, never by text.

    TrueupError
      BrokerError             something about Kafka that waiting does not cure
        BrokerUnreachable     nobody answers
        TopicMismatch         a topic is there, but not as it must be
        GroupRefused          the broker does not admit the worker to its group
        InputLost             retention deleted input that was never applied
        InputRemade           the input topic ends before what was applied: it was made anew
        SnapshotLost          a stage's checkpoint is gone, or its beginning is
        SnapshotFormat        a stage's checkpoint was written by another version, which wrote it otherwise
        NoProgress            lag, and nothing moves
      StageCrashed            a stage ended by an error that is none of these
      StoreUnavailable        ClickHouse does not take rows now; the sink waits and tries again

The rule this file keeps: each message says what is wrong, where, and what to do about it, in one line.
"""

from __future__ import annotations


class TrueupError(Exception):
    """The root: the CLI prints its text without a stack trace."""


class BrokerError(TrueupError):
    """Something about Kafka that waiting does not cure."""


class BrokerUnreachable(BrokerError):
    """Nobody answers."""


class TopicMismatch(BrokerError):
    """Topics exist, but not as they must be.

    Args:
        problems: one line for each wrong setting: topic, setting, found, wanted.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__("topics are not as they must be: " + "; ".join(problems))
        self.problems = problems


class GroupRefused(BrokerError):
    """The broker does not admit the worker to its group."""


class InputLost(BrokerError):
    """Retention deleted input that was never applied."""

    def __init__(self, topic: str, partition: int, applied: int, first: int) -> None:
        super().__init__(
            f"{topic}[{partition}]: applied up to offset {applied}, but the log now starts at {first}: "
            f"{first - applied - 1} messages were deleted by retention before they were read"
        )


class InputRemade(BrokerError):
    """The input ends before what was applied."""

    def __init__(self, topic: str, partition: int, applied: int, end: int) -> None:
        super().__init__(
            f"{topic}[{partition}]: applied up to offset {applied}, but the log ends at {end}: the topic was made "
            "anew, and the checkpoint belongs to the old one; delete the stage's -snap topic too, or restore it"
        )


class SnapshotLost(BrokerError):
    """A stage's checkpoint is gone, or its beginning is."""


class SnapshotFormat(BrokerError):
    """A checkpoint of another format."""

    def __init__(self, topic: str, partition: int, offset: int, found: int, reads: int) -> None:
        if found > reads:
            remedy = "run the version of trueup that wrote it, or a newer one"
        else:
            remedy = (
                "let the version that wrote it end its work, or delete the -snap topics of all stages and read the "
                "input again from its beginning"
            )
        super().__init__(
            f"{topic}[{partition}]: the checkpoint at offset {offset} has format {found}, this version of trueup "
            f"reads format {reads}: {remedy}"
        )


class NoProgress(BrokerError):
    """Lag, and nothing moves."""


class StageCrashed(TrueupError):
    """A stage ended by an error that is no trouble of the broker's; the cause is chained."""


class StoreUnavailable(TrueupError):
    """ClickHouse does not take rows now."""
