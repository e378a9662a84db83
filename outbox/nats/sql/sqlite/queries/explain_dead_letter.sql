UPDATE inbox_dead_letters SET error = ?2 WHERE letter = ?1
