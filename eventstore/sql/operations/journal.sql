-- Records for operators: changes of state, acknowledged findings, and samples.

-- name: insert_change
-- takes: at time, part text, subject text, what text, who text, detail text
INSERT INTO stela_changes (at, part, subject, what, who, detail)
VALUES (:at, :part, :subject, :what, :who, :detail);

-- name: trim_changes
-- Deletes the oldest rows, if they are too old or too many.
-- takes: old_before time, most int
DELETE FROM stela_changes WHERE change IN
  (SELECT oldest.change
   FROM (SELECT c.change, c.at FROM stela_changes AS c ORDER BY c.change LIMIT 100) AS oldest
   WHERE oldest.at < :old_before
      OR oldest.change <= (SELECT max(l.change) FROM stela_changes AS l) - :most);

-- row: change
-- gives: change int, at time, part text, subject text, what text, who text, detail text

-- name: list_changes
-- Newest first.
-- takes: after int, before int, most int
-- gives: change
SELECT change, at, part, subject, what, who, detail FROM stela_changes
WHERE change > :after AND change < :before ORDER BY change DESC LIMIT :most;

-- name: list_changes_forward
-- takes: after int, before int, most int
-- gives: change
SELECT change, at, part, subject, what, who, detail FROM stela_changes
WHERE change > :after AND change < :before ORDER BY change LIMIT :most;

-- name: has_journal
-- A database that was opened read-only may be older.
-- gives: is_there bool
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'stela_changes')
       AS is_there;
-- engine: postgres
SELECT to_regclass('stela_changes') IS NOT NULL AS is_there;

-- name: upsert_acknowledgement
-- takes: code text, subject text, severity text, amount int, who text, why text, at time, until time
INSERT INTO stela_acknowledged (code, subject, severity, amount, who, why, at, until)
VALUES (:code, :subject, :severity, :amount, :who, :why, :at, :until)
ON CONFLICT (code, subject) DO UPDATE SET
  severity = excluded.severity, amount = excluded.amount, who = excluded.who, why = excluded.why,
  at = excluded.at, until = excluded.until;

-- name: delete_acknowledgement
-- takes: code text, subject text
DELETE FROM stela_acknowledged WHERE code = :code AND subject = :subject;

-- name: delete_old_acknowledgements
-- takes: now time
DELETE FROM stela_acknowledged WHERE until <= :now;

-- name: acknowledgements
-- gives: code text, subject text, severity text, amount int, who text, why text, at time, until time
SELECT code, subject, severity, amount, who, why, at, until
FROM stela_acknowledged ORDER BY code, subject;

-- name: series
-- gives: series int, name text
SELECT series, name FROM stela_series ORDER BY name;

-- name: insert_series
-- takes: name text, most int
INSERT INTO stela_series (name)
SELECT :name WHERE (SELECT count(*) FROM stela_series) < :most
ON CONFLICT (name) DO NOTHING;

-- name: last_minute
-- takes: series int
-- gives: minute int
SELECT coalesce(max(minute), 0) AS minute FROM stela_samples WHERE series = :series;

-- name: insert_sample
-- takes: series int, minute int, value int
INSERT INTO stela_samples (series, minute, value) VALUES (:series, :minute, :value)
ON CONFLICT (series, minute) DO NOTHING;

-- name: thin_samples
-- Leaves one sample per hour.
-- takes: series int, after int, through int
DELETE FROM stela_samples
WHERE series = :series AND minute > :after AND minute <= :through AND minute % 60 <> 0;

-- name: drop_samples
-- takes: series int, through int
DELETE FROM stela_samples WHERE series = :series AND minute <= :through;

-- name: samples
-- takes: series int, from int, to int
-- gives: minute int, value int
SELECT minute, value FROM stela_samples
WHERE series = :series AND minute >= :from AND minute <= :to ORDER BY minute;
