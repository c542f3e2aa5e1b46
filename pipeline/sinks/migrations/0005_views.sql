-- The newest state, right without any merge: FINAL takes the highest version of each key and leaves out what is deleted.
CREATE VIEW IF NOT EXISTS v_sessions AS
SELECT * EXCEPT (version, is_deleted, written_at), concat(conversation, '#', toString(ordinal)) AS session
FROM verdicts FINAL;

CREATE VIEW IF NOT EXISTS v_rates AS
SELECT cube, dimensions, rate, bucket, numerator, denominator
FROM segment_metrics FINAL;

-- Buckets whose counts are no longer those first published.
CREATE VIEW IF NOT EXISTS v_restatements AS
SELECT cube, dimensions, rate, bucket, first_numerator, first_denominator, numerator, denominator, as_of
FROM segment_metrics FINAL
WHERE isNotNull(first_denominator) AND (first_numerator != numerator OR first_denominator != denominator);
