UPDATE inbox_held SET wish = ?2, due_at = ?3 WHERE held = ?1 AND due_at IS NOT NULL
