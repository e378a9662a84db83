-- What of reactions and processes moves with a store: checkpoints, parked events, timers. Projectors
-- are built again.

-- table: projections
-- where: t.kind = 'reaction'
-- stays: owner, lease_until, filter, upto, target, definitions, lease_ttl, presence,
--        failing_since, stopped_at
-- sets: kind = 'reaction', state = 'living'

-- table: projection_parked
-- where: EXISTS (SELECT 1 FROM projections AS p
--                WHERE p.name = t.name AND p.build = t.build AND p.kind = 'reaction')

-- table: projection_processes

-- table: projection_timers

-- table: projection_timer_holds
-- What an operator holds. What holds a copy, or the clock of a host, isn't true of the next one.
-- where: t.reason = 'operator'
-- sets: reason = 'operator', ahead = 0

-- table: projection_timer_actions
-- stays: action

-- name: owned_reaction
-- A reaction that a runner drives; on a server, by the server's clock.
-- takes: now time
-- gives: name text, owner text
SELECT name, owner FROM projections
WHERE kind = 'reaction' AND owner IS NOT NULL AND lease_until > :now ORDER BY name LIMIT 1;
-- engine: postgres
SELECT name, owner FROM projections
WHERE kind = 'reaction' AND owner IS NOT NULL AND :now IS NOT NULL
  AND lease_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
ORDER BY name LIMIT 1;

-- name: has_reactions
-- gives: has_any bool
SELECT EXISTS (SELECT 1 FROM projections WHERE kind = 'reaction') AS has_any;

-- name: load_last_builds
-- After the reactions.
INSERT INTO projection_builds (name, last)
SELECT name, build FROM projections WHERE kind = 'reaction';
