SELECT stream, kind FROM outbox_redeliveries WHERE redelivery = ?1
