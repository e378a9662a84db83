SELECT g.gap, c.name, g.source, g.stream, g.after, g.missing, g.before, g.seen_at
FROM inbox_gaps g JOIN inbox_consumers c USING (consumer)
WHERE (?1 = '' OR c.name = ?1) AND g.missing IS NOT NULL AND g.gap > ?2
ORDER BY g.gap LIMIT ?3
