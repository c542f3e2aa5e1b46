-- What erasure orders found, and where. An order that is carried out again finds less: of a receipt the greatest count holds.
CREATE TABLE IF NOT EXISTS erasures
(
    order_id   String,
    stage      LowCardinality(String),
    partition  Int32,
    alias      String                 COMMENT 'stands for a conversation; made with salt that is kept nowhere',
    what       LowCardinality(String),
    n          UInt64,
    written_at DateTime('UTC') DEFAULT now()
)
ENGINE = ReplacingMergeTree(n)
ORDER BY (order_id, stage, partition, alias, what)
SETTINGS non_replicated_deduplication_window = 1000;

-- Conversations that must not come again, as digests: rows that were on their way, or are sent again, are refused by this.
CREATE TABLE IF NOT EXISTS erased
(
    tenant LowCardinality(String),
    digest String                COMMENT '32 hex digits, of tenant and conversation',
    place  UInt64                COMMENT 'cityHash64 of the conversation, as in the sort keys',
    until  DateTime64(3, 'UTC')  COMMENT 'from then on the stages refuse it as too old'
)
ENGINE = ReplacingMergeTree(until)
ORDER BY (tenant, digest)
TTL toDateTime(until);
