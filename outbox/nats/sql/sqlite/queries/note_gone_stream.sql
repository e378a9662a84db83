UPDATE inbox_broker_streams SET gone_since = coalesce(gone_since, ?3)
WHERE consumer = ?1 AND broker_stream = ?2
