SELECT broker_stream FROM inbox_broker_streams WHERE consumer = ?1 AND broker_stream <> ?2
