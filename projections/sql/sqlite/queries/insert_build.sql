INSERT INTO projections
  (name, build, version, kind, state, position, began_at, changed_at, filter, upto, target)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9, ?10)
