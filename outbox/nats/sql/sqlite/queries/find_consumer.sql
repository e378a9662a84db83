SELECT consumer FROM inbox_consumers WHERE name = ?1
