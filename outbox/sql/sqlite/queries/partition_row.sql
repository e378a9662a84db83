SELECT published_through, stopped, owner FROM outbox_partitions WHERE partition = ?1
