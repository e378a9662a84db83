-- The participants in appends, and the epoch that tells writers of changes.

-- name: participants
-- doing: reading the participants
-- gives: name text, detail text
SELECT name, detail FROM stela.stela_participants ORDER BY name;

-- name: add_participant
-- doing: registering a participant
-- takes: name text, detail text, now time
INSERT INTO stela.stela_participants VALUES (:name, :detail, :now);

-- name: delete_participant
-- doing: forgetting a participant
-- takes: name text
DELETE FROM stela.stela_participants WHERE name = :name;

-- name: epoch
-- doing: reading the participants
-- gives: epoch uuid
SELECT epoch FROM stela.stela_configuration;

-- name: change_epoch
-- Makes writers reread what they know of the store.
UPDATE stela.stela_configuration SET epoch = gen_random_uuid();
