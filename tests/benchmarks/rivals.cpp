#include "rivals.hpp"

#include <vector>

namespace stela::bench {
namespace {

constexpr const char* category_lock_sql = R"(
CREATE TABLE rivals.messages (
  global_position bigserial PRIMARY KEY, position bigint NOT NULL,
  time timestamp NOT NULL DEFAULT (now() AT TIME ZONE 'utc'), stream_name text NOT NULL,
  type text NOT NULL, data jsonb, metadata jsonb, id uuid NOT NULL UNIQUE,
  UNIQUE (stream_name, position));
CREATE FUNCTION rivals.category_of(name text) RETURNS text LANGUAGE sql IMMUTABLE
AS $$ SELECT split_part(name, '-', 1) $$;
CREATE INDEX ON rivals.messages (rivals.category_of(stream_name), global_position);
CREATE FUNCTION rivals.write_message(
  new_id uuid, name text, kind text, body jsonb, about jsonb, expected bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  last bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(rivals.category_of(name), 0));
  SELECT coalesce(max(m.position), -1) INTO last FROM rivals.messages AS m
  WHERE m.stream_name = name;
  IF last <> expected THEN RAISE EXCEPTION 'version %, not %', last, expected; END IF;
  INSERT INTO rivals.messages (id, stream_name, position, type, data, metadata)
  VALUES (new_id, name, last + 1, kind, body, about);
  RETURN last + 1;
END $$)";

constexpr const char* table_lock_sql = R"(
CREATE TABLE rivals.stored_events (
  originator_id uuid NOT NULL, originator_version integer NOT NULL, topic text, state bytea,
  notification_id bigserial UNIQUE, PRIMARY KEY (originator_id, originator_version)))";

constexpr const char* all_stream_row_sql = R"(
CREATE TABLE rivals.all_events (
  event_id uuid PRIMARY KEY, type text NOT NULL, data bytea NOT NULL, metadata bytea,
  created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE rivals.all_streams (
  stream_id bigserial PRIMARY KEY, name text NOT NULL UNIQUE, version bigint NOT NULL DEFAULT 0);
CREATE TABLE rivals.links (
  event_id uuid NOT NULL REFERENCES rivals.all_events, stream_id bigint NOT NULL,
  version bigint NOT NULL, from_stream bigint NOT NULL, from_version bigint NOT NULL,
  PRIMARY KEY (event_id, stream_id), UNIQUE (stream_id, version));
INSERT INTO rivals.all_streams (stream_id, name) VALUES (0, '$all');
CREATE FUNCTION rivals.tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('rivals', new.name || ',' || new.version);
  RETURN NULL;
END $$;
CREATE TRIGGER tell AFTER UPDATE ON rivals.all_streams FOR EACH ROW EXECUTE FUNCTION rivals.tell())";

constexpr const char* unordered_sql = R"(
CREATE TABLE rivals.quick_streams (
  id text PRIMARY KEY, version bigint NOT NULL, changed timestamptz NOT NULL DEFAULT now());
CREATE TABLE rivals.quick_events (
  seq_id bigint PRIMARY KEY, id uuid NOT NULL UNIQUE,
  stream_id text NOT NULL REFERENCES rivals.quick_streams, version bigint NOT NULL,
  data jsonb NOT NULL, type text NOT NULL, timestamp timestamptz NOT NULL,
  UNIQUE (stream_id, version));
CREATE SEQUENCE rivals.quick_numbers;
CREATE FUNCTION rivals.quick_append(
  stream text, ids uuid[], types text[], bodies jsonb[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  last bigint;
  number bigint;
  answer bigint[];
BEGIN
  SELECT s.version INTO last FROM rivals.quick_streams AS s WHERE s.id = stream;
  IF last IS NULL THEN
    last := 0;
    INSERT INTO rivals.quick_streams (id, version) VALUES (stream, 0);
  END IF;
  FOR i IN 1 .. array_length(ids, 1) LOOP
    number := nextval('rivals.quick_numbers');
    INSERT INTO rivals.quick_events
    VALUES (number, ids[i], stream, last + i, bodies[i], types[i], now());
    answer := answer || number;
  END LOOP;
  UPDATE rivals.quick_streams SET version = last + array_length(ids, 1), changed = now()
  WHERE id = stream;
  RETURN answer;
END $$)";

constexpr const char* link_sql = R"(
WITH e AS (
  INSERT INTO rivals.all_events (event_id, type, data, metadata)
  VALUES ($2::uuid, 'basket.line_added', $3::bytea, convert_to($4, 'UTF8'))
), s AS (
  UPDATE rivals.all_streams SET version = version + 1 WHERE name = $1 RETURNING stream_id, version
), own AS (
  INSERT INTO rivals.links
  SELECT $2::uuid, s.stream_id, $5::bigint, s.stream_id, $5::bigint FROM s
), a AS (
  UPDATE rivals.all_streams SET version = version + 1 WHERE stream_id = 0 RETURNING version
)
INSERT INTO rivals.links
SELECT $2::uuid, 0, a.version, s.stream_id, $5::bigint FROM s, a)";

}  // namespace

void make_rivals(const std::string& conninfo) {
  RawPostgres database{conninfo};
  database.execute(
      "SET client_min_messages = warning; DROP SCHEMA IF EXISTS rivals CASCADE; "
      "CREATE SCHEMA rivals");
  for (const char* const sql :
       {category_lock_sql, table_lock_sql, all_stream_row_sql, unordered_sql}) {
    database.execute(sql);
  }
}

RivalAppend::RivalAppend(const std::string& conninfo, Rival rival, std::int64_t stream,
                         std::string payload)
    : database_{conninfo},
      rival_{rival},
      stream_{"basket-" + std::to_string(stream)},
      payload_{std::move(payload)},
      dice_{static_cast<std::uint64_t>(stream) + 1000} {
  database_.prepare("begin", "BEGIN");
  database_.prepare("commit", "COMMIT");
  switch (rival) {
    case Rival::category_lock:
      database_.prepare("append",
                        "SELECT rivals.write_message($2::uuid, $1, 'basket.line_added', "
                        "convert_from($3::bytea, 'UTF8')::jsonb, $4::jsonb, $5::bigint - 2)");
      break;
    case Rival::table_lock:
      database_.prepare("lock", "LOCK TABLE rivals.stored_events IN EXCLUSIVE MODE");
      database_.prepare("append",
                        "INSERT INTO rivals.stored_events VALUES (md5($1)::uuid, $5::integer, "
                        "'basket.line_added', $3::bytea || $2::bytea || convert_to($4, 'UTF8')) "
                        "RETURNING notification_id");
      break;
    case Rival::all_stream_row:
      database_.execute("INSERT INTO rivals.all_streams (name) VALUES ('" + stream_ + "')");
      database_.prepare("append", link_sql);
      break;
    case Rival::unordered:
      database_.prepare("append",
                        "SELECT rivals.quick_append($1, ARRAY[$2::uuid], "
                        "ARRAY['basket.line_added'], ARRAY[convert_from($3::bytea, "
                        "'UTF8')::jsonb]) WHERE $4::text <> '' AND $5::bigint > 0");
      break;
  }
}

void RivalAppend::run() {
  std::vector<RawPostgres::Step> steps;
  // A function that is called alone is its own transaction.
  const bool has_transaction = rival_ == Rival::table_lock || rival_ == Rival::all_stream_row;
  if (has_transaction) steps.push_back({"begin"});
  if (rival_ == Rival::table_lock) steps.push_back({"lock"});
  steps.push_back({"append",
                   {stream_, random_id(dice_), payload_, raw_metadata, std::to_string(++version_)},
                   {0, 1, 1, 0, 0}});
  if (has_transaction) steps.push_back({"commit"});
  database_.run(steps);
}

}  // namespace stela::bench
