DELETE FROM outbox_messages WHERE partition = ?1 AND sequence BETWEEN ?2 AND ?3 AND claim = ?4
