DELETE FROM outbox_actions WHERE action IN
  (SELECT action FROM outbox_actions WHERE at < ?1 ORDER BY action LIMIT ?2)
