-- Counts of every rate in every cohort bucket of every segment. The bucket is in the key, so it may make the partition, too.
-- No materialized view may read this table: an incremental one would add a correction to what it corrects.
CREATE TABLE IF NOT EXISTS segment_metrics
(
    cube              LowCardinality(String),
    dimensions        Map(LowCardinality(String), String),
    rate              LowCardinality(String),
    bucket            DateTime64(3, 'UTC'),
    version           UInt64,
    is_deleted        UInt8,
    numerator         UInt64,
    denominator       UInt64,
    first_numerator   Nullable(UInt64)              COMMENT 'as first published; NULL before that',
    first_denominator Nullable(UInt64),
    as_of             DateTime64(3, 'UTC'),
    segment           String MATERIALIZED toJSONString(mapSort(dimensions)) COMMENT 'the dimensions as a sortable key',
    written_at        DateTime('UTC') DEFAULT now(),
    CONSTRAINT no_rate_above_one CHECK numerator <= denominator
)
ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMM(bucket)
ORDER BY (cube, rate, bucket, segment)
SETTINGS non_replicated_deduplication_window = 1000;
