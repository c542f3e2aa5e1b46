-- What could not be used, and why. A dead letter has no version: it never changes. One message may bring several.
CREATE TABLE IF NOT EXISTS dead_letters
(
    reason      LowCardinality(String),
    detail      String                        CODEC(ZSTD(1)),
    topic       LowCardinality(String),
    partition   Int32,
    offset      Int64                         COMMENT '-1 where it is not one message',
    size        UInt64                        COMMENT 'bytes',
    record_time DateTime64(3, 'UTC'),
    tenant      LowCardinality(String),
    trace_id    String,
    payload     String                        COMMENT 'only where it is switched on' CODEC(ZSTD(3)),
    written_at  DateTime('UTC') DEFAULT now()
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(record_time)
ORDER BY (reason, topic, partition, offset, trace_id, detail)
SETTINGS non_replicated_deduplication_window = 1000;
