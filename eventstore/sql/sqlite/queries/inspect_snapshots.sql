SELECT n.stream, s.name, n.version, n.sequence, n.state_version, n.taken_at, n.checksum, n.payload,
       e.stream, e.version
FROM snapshots AS n
     LEFT JOIN streams AS s ON s.stream = n.stream
     LEFT JOIN events AS e NOT INDEXED ON e.sequence = n.sequence
WHERE n.stream > ?1
ORDER BY n.stream LIMIT ?2
