-- Which service, in which version, sends spans whose parents never come: a step in this share, not in the agents' work, is
-- why sessions fall apart after an upgrade.
ALTER TABLE agent_steps
    ADD COLUMN IF NOT EXISTS service LowCardinality(String) COMMENT 'service.name and service.version, as the span says' AFTER flags;

CREATE VIEW IF NOT EXISTS v_orphans AS
SELECT tenant, service, toStartOfHour(began) AS hour, count() AS traces, countIf(missing > 0) AS with_missing_parents
FROM
(
    SELECT
        tenant,
        trace_id,
        argMin(service, start) AS service,
        min(start) AS began,
        arrayCount(parent -> parent != '' AND NOT has(groupArray(span_id), parent), groupArray(parent_id)) AS missing
    FROM agent_steps FINAL
    GROUP BY tenant, trace_id
)
GROUP BY tenant, service, hour;
