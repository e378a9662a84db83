UPDATE outbox_partitions SET discarded = discarded - ?2 WHERE partition = ?1
