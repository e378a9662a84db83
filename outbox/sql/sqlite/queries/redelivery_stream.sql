SELECT stream, kind, claim, was_lost FROM outbox_redeliveries WHERE redelivery = ?1
