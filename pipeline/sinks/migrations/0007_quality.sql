-- How well a session was done, why it is incomplete, and which scenario it plays.
ALTER TABLE verdicts
    ADD COLUMN IF NOT EXISTS goal_achievement Nullable(Float64) COMMENT '0 to 10; NULL unless every part was scored' AFTER as_of,
    ADD COLUMN IF NOT EXISTS goal_state LowCardinality(String) COMMENT 'scored, abstained, error or missing' AFTER goal_achievement,
    ADD COLUMN IF NOT EXISTS coherence Nullable(Float64) COMMENT '0 to 10; NULL unless scored' AFTER goal_state,
    ADD COLUMN IF NOT EXISTS coherence_state LowCardinality(String) AFTER coherence,
    ADD COLUMN IF NOT EXISTS contradictions UInt32 COMMENT 'how many the judge of coherence told' AFTER coherence_state,
    ADD COLUMN IF NOT EXISTS feedback Nullable(Float64) COMMENT 'of the customer, 0 to 1' AFTER contradictions,
    ADD COLUMN IF NOT EXISTS memory Nullable(Float64) COMMENT 'mean of what was scored about that layer, 0 to 1' AFTER feedback,
    ADD COLUMN IF NOT EXISTS knowledge Nullable(Float64) AFTER memory,
    ADD COLUMN IF NOT EXISTS tool Nullable(Float64) AFTER knowledge,
    ADD COLUMN IF NOT EXISTS prompt Nullable(Float64) AFTER tool,
    ADD COLUMN IF NOT EXISTS system Nullable(Float64) AFTER prompt,
    ADD COLUMN IF NOT EXISTS failure_stage LowCardinality(String) COMMENT 'of the earliest cause; empty unless incomplete' AFTER system,
    ADD COLUMN IF NOT EXISTS failure_cause LowCardinality(String) AFTER failure_stage,
    ADD COLUMN IF NOT EXISTS failure_agent LowCardinality(String) AFTER failure_cause,
    ADD COLUMN IF NOT EXISTS failure_at DateTime64(3, 'UTC') COMMENT '1970 where there is none' AFTER failure_agent,
    ADD COLUMN IF NOT EXISTS scenario LowCardinality(String) AFTER failure_at,
    ADD COLUMN IF NOT EXISTS trial String AFTER scenario,
    ADD COLUMN IF NOT EXISTS tool_name_precision Nullable(Float64) AFTER trial,
    ADD COLUMN IF NOT EXISTS tool_name_recall Nullable(Float64) AFTER tool_name_precision,
    ADD COLUMN IF NOT EXISTS tool_argument_precision Nullable(Float64) AFTER tool_name_recall,
    ADD COLUMN IF NOT EXISTS tool_argument_recall Nullable(Float64) AFTER tool_argument_precision,
    ADD COLUMN IF NOT EXISTS reliability Nullable(Float64) COMMENT 'mean of the two recalls' AFTER tool_argument_recall;

ALTER TABLE verdicts COMMENT COLUMN IF EXISTS score 'partial credit, 0 to 1; it never makes incomplete complete';

ALTER TABLE criteria ADD COLUMN IF NOT EXISTS failed_at DateTime64(3, 'UTC') COMMENT '1970 where it has not failed' AFTER agent;

CREATE TABLE IF NOT EXISTS evaluations
(
    tenant         LowCardinality(String),
    conversation   String                        CODEC(ZSTD(3)),
    ordinal        UInt32,
    version        UInt64,
    is_deleted     UInt8,
    evaluation     LowCardinality(String)        COMMENT 'its name',
    state          LowCardinality(String)        COMMENT 'scored, abstained or error: only a score is a number',
    score          Nullable(Float64)             COMMENT 'as it was given',
    normal         Nullable(Float64)             COMMENT 'on a scale of 0 to 1; NULL where its scale is not known',
    label          String,
    layer          LowCardinality(String)        COMMENT 'memory, knowledge, tool, prompt or system',
    source         LowCardinality(String),
    at             DateTime64(3, 'UTC'),
    from_agent     Bool,
    contradictions UInt32,
    written_at     DateTime('UTC') DEFAULT now()
)
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY (tenant, cityHash64(conversation), conversation, ordinal, evaluation)
SETTINGS non_replicated_deduplication_window = 1000;

DROP VIEW IF EXISTS v_sessions;

CREATE VIEW IF NOT EXISTS v_sessions AS
SELECT * EXCEPT (version, is_deleted, written_at), concat(conversation, '#', toString(ordinal)) AS session
FROM verdicts FINAL;

-- Parts of a verdict are those of its own version: what a verdict no longer has (another contract judges it, an evaluation
-- was retracted) keeps its old row, and is no part of it any more.
CREATE VIEW IF NOT EXISTS v_criteria AS
SELECT c.* EXCEPT (version, is_deleted, written_at), concat(c.conversation, '#', toString(c.ordinal)) AS session
FROM criteria AS c FINAL
SEMI LEFT JOIN verdicts AS v FINAL USING (tenant, conversation, ordinal, version);

CREATE VIEW IF NOT EXISTS v_evaluations AS
SELECT e.* EXCEPT (version, is_deleted, written_at), concat(e.conversation, '#', toString(e.ordinal)) AS session
FROM evaluations AS e FINAL
SEMI LEFT JOIN verdicts AS v FINAL USING (tenant, conversation, ordinal, version);
