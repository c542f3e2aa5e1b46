-- Sessions as judged. Of the rows of one key the highest version holds; a reader says FINAL.
-- What is in ORDER BY may never change for a logical row: a changed key would be a second row, not a correction. A session's
-- times, family and bucket do change, so they are in no key, and there is no PARTITION BY: two versions of a row could come to
-- lie in two partitions, which no merge would ever bring together. Ids never lead: the tenant does, then a hash, which
-- spreads conversations evenly and makes the index small.
CREATE TABLE IF NOT EXISTS verdicts
(
    tenant            LowCardinality(String),
    conversation      String                        CODEC(ZSTD(3)),
    ordinal           UInt32,
    version           UInt64                        COMMENT 'of one key the highest holds',
    is_deleted        UInt8,
    revision          UInt32                        COMMENT '1, 2, 3: what people see of the versions',
    reason            String                        COMMENT 'why: what arrived, what it changed' CODEC(ZSTD(3)),
    start             DateTime64(3, 'UTC'),
    end               DateTime64(3, 'UTC'),
    bucket            DateTime64(3, 'UTC')          COMMENT 'the cohort bucket in which the session ended',
    attributed        Bool                          COMMENT 'has a real conversation id',
    family            LowCardinality(String),
    family_source     LowCardinality(String),
    contract_version  LowCardinality(String)        COMMENT 'family@version that judged it',
    claim             LowCardinality(String)        COMMENT 'the value of the explicit claim',
    claimed           LowCardinality(String)        COMMENT 'explicit, assumed, or empty: not claimed completed',
    terminal_reason   LowCardinality(String),
    completion        LowCardinality(String)        COMMENT 'pending, complete or incomplete',
    verified          Nullable(Bool)                COMMENT 'NULL: no independent criterion applies',
    escalated         Bool,
    handoff_attempted Bool,
    reopened          Bool,
    reopened_at       DateTime64(3, 'UTC')          COMMENT '1970 where unknown',
    follow_up         Bool,
    confirmed         Nullable(Bool)                COMMENT 'NULL: the customer has not answered',
    refused           Bool,
    invalid           Bool,
    eligible          Bool,
    resolved          Bool,
    score             Nullable(Float64)             COMMENT 'goal achievement, 0 to 10',
    turns             UInt32,
    runs              UInt32,
    tool_calls        UInt32,
    tool_calls_ok     UInt32,
    errors            UInt32,
    retries           UInt32,
    input_tokens      UInt64,
    output_tokens     UInt64,
    cached_tokens     UInt64,
    agents            Array(String),
    models            Array(String),
    tools             Array(String),
    trace_ids         Array(String)                 COMMENT '32 hex digits each' CODEC(ZSTD(1)),
    flags             Array(LowCardinality(String)),
    subjects          Array(String)                 COMMENT 'keyed hashes of whom it served',
    issues            Array(String),
    settled           Bool,
    as_of             DateTime64(3, 'UTC')          COMMENT 'the watermark when it was judged',
    began             DateTime64(3, 'UTC')          COMMENT 'which life of the conversation: the event time of what came first of it',
    written_at        DateTime('UTC') DEFAULT now() COMMENT 'retention counts from here'
)
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY (tenant, cityHash64(conversation), conversation, ordinal)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS criteria
(
    tenant       LowCardinality(String),
    conversation String                        CODEC(ZSTD(3)),
    ordinal      UInt32,
    version      UInt64,
    is_deleted   UInt8,
    criterion    LowCardinality(String),
    required     Bool,
    independent  Bool,
    weight       Float64,
    status       LowCardinality(String),
    reason       LowCardinality(String),
    passed_at    DateTime64(3, 'UTC')          COMMENT '1970 where it has not passed',
    deadline     DateTime64(3, 'UTC')          COMMENT '1970 where it has none',
    stage        LowCardinality(String),
    agent        LowCardinality(String),
    written_at   DateTime('UTC') DEFAULT now()
)
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY (tenant, cityHash64(conversation), conversation, ordinal, criterion)
SETTINGS non_replicated_deduplication_window = 1000;

-- Every revision ever published, with its reason: the audit. A revision sent again has the same number and replaces itself;
-- one of an earlier life of the conversation, which was forgotten since, has the same number and does not.
CREATE TABLE IF NOT EXISTS revisions
(
    tenant       LowCardinality(String),
    conversation String                        CODEC(ZSTD(3)),
    ordinal      UInt32,
    revision     UInt32,
    version      UInt64,
    is_deleted   UInt8,
    as_of        DateTime64(3, 'UTC'),
    reason       String                        CODEC(ZSTD(3)),
    changed      String                        COMMENT 'JSON: what differs from the revision before' CODEC(ZSTD(3)),
    verdict      String                        COMMENT 'JSON: the verdict as published' CODEC(ZSTD(3)),
    began        DateTime64(3, 'UTC')          COMMENT 'which life of the conversation: the event time of what came first of it',
    written_at   DateTime('UTC') DEFAULT now()
)
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY (tenant, cityHash64(conversation), conversation, began, ordinal, revision)
SETTINGS non_replicated_deduplication_window = 1000;
