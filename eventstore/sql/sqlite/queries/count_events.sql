SELECT kind, count(*), sum(length(payload)), min(sequence), max(sequence)
FROM events WHERE sequence BETWEEN ?1 AND ?2 GROUP BY kind
