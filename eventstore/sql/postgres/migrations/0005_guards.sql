-- A guard of inserts costs each append an eighth of its time. So `events` and `outbox_messages` have
-- none: what SQL of the user's adds to events is found at the end of its transaction, see
-- refuse_foreign_events; a pointer to no event that is to be published, `verify` finds.
CREATE OR REPLACE FUNCTION stela.guard_tables() RETURNS void LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
DECLARE
  the_table regclass;
  changes text;
BEGIN
  FOR the_table, changes IN
    SELECT c.oid, CASE WHEN c.relname IN ('events', 'outbox_messages') THEN '' ELSE 'INSERT OR ' END
    FROM pg_class AS c
    WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind = 'r'
      AND NOT EXISTS (SELECT FROM pg_trigger AS t
                      WHERE t.tgrelid = c.oid AND t.tgname = 'belongs_to_stela')
    ORDER BY c.oid
  LOOP
    EXECUTE 'CREATE TRIGGER belongs_to_stela BEFORE ' || changes || 'UPDATE OR DELETE OR TRUNCATE ON '
      || the_table || ' FOR EACH STATEMENT '
      'WHEN (coalesce(current_setting(''stela_sql.guard'', true), '''') NOT IN ('''', ''off'')) '
      'EXECUTE FUNCTION refuse_users_change()';
  END LOOP;
END $$;
DROP TRIGGER IF EXISTS belongs_to_stela ON stela.events;

-- Whether this transaction, or a part of it behind a savepoint, wrote a row: one that it sees, whose
-- xmin is `writer`. Others' that it sees are committed.
CREATE FUNCTION stela.is_own_row(writer xid) RETURNS boolean LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
DECLARE
  own CONSTANT bigint := pg_current_xact_id_if_assigned()::text::bigint;
  -- How many transactions later the writer is. An xid has 32 bits.
  later CONSTANT bigint := ((writer::text::bigint - own) & 4294967295 # 2147483648) - 2147483648;
BEGIN
  IF own IS NULL OR later < 0 THEN RETURN false; END IF;
  RETURN coalesce(pg_xact_status((own + later)::text::xid8) = 'in progress', false);
EXCEPTION WHEN invalid_parameter_value THEN
  -- No transaction has that number yet: the row is so old that its own came round again.
  RETURN false;
END $$;

-- At the end of a transaction in which SQL of the user's ran: fails if that added events. Whoever
-- appended under the order lock says which the last one is, NULL if the transaction appended nothing
-- and others may have meanwhile. Sequences are dense, so that a foreign row has no place but below
-- all of them, or above: and nobody appends past it before the transaction ends.
CREATE FUNCTION stela.refuse_foreign_events(last bigint) RETURNS void LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
DECLARE
  top bigint;
  writer xid;
BEGIN
  SELECT e.sequence, e.xmin INTO top, writer FROM events AS e ORDER BY e.sequence DESC LIMIT 1;
  IF coalesce(top, 0) <> last OR (last IS NULL AND is_own_row(writer))
     OR EXISTS (SELECT FROM events AS e WHERE e.sequence < 1 AND is_own_row(e.xmin)) THEN
    RAISE EXCEPTION 'it writes ''events'', and that table is Stela''s'
      USING ERRCODE = 'restrict_violation';
  END IF;
END $$;
