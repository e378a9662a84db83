SELECT stream_made_at, settled_through FROM inbox_settled
WHERE consumer = ?1 AND broker_stream = ?2 AND filter = ?3 AND begins = ?4
