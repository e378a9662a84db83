INSERT INTO projections (name, build, version, kind, state, position, definitions, began_at, changed_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?7)
