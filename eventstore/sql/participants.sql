-- The participants that every append requires, and the facts of this database.

-- name: participants
-- gives: name text, detail text, registered_at time
SELECT name, detail, registered_at FROM stela_participants ORDER BY name;

-- name: insert_participant
-- takes: name text, detail text, registered_at time, checksum int
INSERT INTO stela_participants (name, detail, registered_at, checksum)
VALUES (:name, :detail, :registered_at, :checksum);

-- name: delete_participant
-- takes: name text
DELETE FROM stela_participants WHERE name = :name;

-- name: facts
-- gives: name text, value text, checksum int
SELECT name, value, checksum FROM stela_facts ORDER BY name;

-- name: insert_fact
-- takes: name text, value text, checksum int
INSERT INTO stela_facts (name, value, checksum) VALUES (:name, :value, :checksum);

-- name: replace_fact
-- takes: name text, value text, checksum int
INSERT OR REPLACE INTO stela_facts (name, value, checksum) VALUES (:name, :value, :checksum);
