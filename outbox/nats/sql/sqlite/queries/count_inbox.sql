SELECT c.name,
       (SELECT count(*) FROM inbox_held AS h
        WHERE h.consumer = c.consumer AND h.due_at IS NOT NULL),
       (SELECT count(*) FROM inbox_held AS h WHERE h.consumer = c.consumer),
       (SELECT min(h.held_at) FROM inbox_held AS h
        WHERE h.consumer = c.consumer AND h.due_at IS NOT NULL),
       (SELECT count(*) FROM inbox_dead_letters AS d WHERE d.consumer = c.consumer),
       (SELECT count(*) FROM inbox_gaps AS g
        WHERE g.consumer = c.consumer AND g.missing IS NOT NULL)
FROM inbox_consumers AS c ORDER BY c.name
