-- It is made again, without inserts.
DROP TRIGGER IF EXISTS belongs_to_stela ON stela.outbox_messages;
