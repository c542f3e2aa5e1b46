-- What verdicts rest on. The conversation is part of each key: a trace or an outcome that moves to another conversation is
-- deleted in the one and written in the other, by two partitions whose versions cannot be compared.
CREATE TABLE IF NOT EXISTS outcomes
(
    tenant        LowCardinality(String),
    conversation  String                        CODEC(ZSTD(3)),
    source        LowCardinality(String),
    event_id      String,
    via           String                        COMMENT 'session, or the correlation key it came by: name=value',
    version       UInt64,
    is_deleted    UInt8,
    event_version UInt64,
    event_time    DateTime64(3, 'UTC'),
    kind          LowCardinality(String),
    data          String                        COMMENT 'JSON' CODEC(ZSTD(3)),
    from_agent    Bool                          COMMENT 'from a source of the agents: a claim, no evidence',
    began         DateTime64(3, 'UTC')          COMMENT 'which life of the conversation: the event time of what came first of it',
    written_at    DateTime('UTC') DEFAULT now()
)
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY (tenant, cityHash64(conversation), conversation, source, event_id, via)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS agent_steps
(
    tenant        LowCardinality(String),
    conversation  String                        CODEC(ZSTD(3)),
    trace_id      String                        COMMENT '32 hex digits' CODEC(ZSTD(1)),
    span_id       String                        COMMENT '16 hex digits' CODEC(ZSTD(1)),
    version       UInt64,
    is_deleted    UInt8,
    parent_id     String                        COMMENT '16 hex digits; empty for a root' CODEC(ZSTD(1)),
    start         DateTime64(3, 'UTC'),
    end           DateTime64(3, 'UTC'),
    kind          LowCardinality(String),
    name          String                        CODEC(ZSTD(1)),
    agent         LowCardinality(String),
    tool          LowCardinality(String),
    call_id       String,
    model         LowCardinality(String),
    failed        Bool,
    control       LowCardinality(String),
    input_tokens  UInt64,
    output_tokens UInt64,
    cached_tokens UInt64,
    flags         UInt32                        COMMENT '1 negative duration, 2 record time, 4 bad UTF-8, 8 cut',
    began         DateTime64(3, 'UTC')          COMMENT 'which life of the conversation: the event time of what came first of it',
    written_at    DateTime('UTC') DEFAULT now()
)
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY (tenant, cityHash64(conversation), conversation, trace_id, span_id)
SETTINGS non_replicated_deduplication_window = 1000;
