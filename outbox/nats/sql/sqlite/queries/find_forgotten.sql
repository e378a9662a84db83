SELECT forgotten_through FROM inbox_consumers WHERE consumer = ?1
