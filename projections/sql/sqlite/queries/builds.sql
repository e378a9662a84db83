SELECT name, build, version, kind, state, position, epoch, owner, lease_until, attempts,
       next_attempt_at, failing, error, halted, definitions, began_at, changed_at, filter, upto, target
FROM projections ORDER BY name, build
