UPDATE inbox_held SET due_at = ?2 WHERE held = ?1
