SELECT detail FROM stela_participants WHERE name = 'outbox'
