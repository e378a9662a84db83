#include "seeds_events.hpp"

#include "shop.hpp"

namespace stela::bench {
namespace {

constexpr const char* tables_sql = R"sql(
CREATE TABLE events (
  sequence       INTEGER PRIMARY KEY AUTOINCREMENT,
  stream_id      TEXT NOT NULL,
  stream_version INTEGER NOT NULL,
  event_type     TEXT NOT NULL,
  event_version  INTEGER NOT NULL,
  payload        BLOB NOT NULL,
  metadata       TEXT NOT NULL,
  occurred_at    INTEGER NOT NULL,
  UNIQUE (stream_id, stream_version)
);
CREATE TABLE outbox (
  global_sequence INTEGER PRIMARY KEY,
  attempts        INTEGER NOT NULL DEFAULT 0,
  available_at    INTEGER NOT NULL,
  published_at    INTEGER,
  partition_key   TEXT,
  claim_token     TEXT,
  last_error      TEXT
);
)sql";

constexpr const char* index_sql(SeedsIndex index) {
  return index == SeedsIndex::full
             ? "CREATE INDEX outbox_due ON outbox (published_at, available_at)"
             : "CREATE INDEX outbox_due ON outbox (global_sequence) WHERE published_at IS NULL";
}

}  // namespace

RawDatabase SeedsAppender::make(const std::string& path, const Options& options) {
  RawDatabase database{path, options.raw};
  database.execute(tables_sql);
  database.execute(index_sql(options.index));
  return database;
}

SeedsAppender::SeedsAppender(const std::string& path, const Options& options)
    : database_{make(path, options)},
      begin_{database_, "BEGIN IMMEDIATE"},
      event_{database_,
             "INSERT INTO events (stream_id, stream_version, event_type, event_version, payload,"
             " metadata, occurred_at) VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6)"},
      message_{database_,
               "INSERT INTO outbox (global_sequence, attempts, available_at, partition_key) "
               "VALUES (?1, 0, ?2, ?3)"},
      commit_{database_, "COMMIT"},
      versions_(options.streams) {
  for (std::size_t i = 0; i < options.streams; ++i) streams_.push_back(basket_id(i).key());
  event_.bind_text(3, LineAdded::event_type.name);
  event_.bind_blob(4, payload_);
  event_.bind_text(5, metadata_);
  message_.bind_text(3, "p00");
}

void SeedsAppender::append(std::size_t stream, std::size_t events) {
  event_.bind_text(1, streams_[stream]);
  begin_.run();
  for (std::size_t i = 0; i < events; ++i) {
    event_.bind(2, ++versions_[stream]);
    event_.bind(6, ++now_);
    event_.run();
    message_.bind(1, sqlite3_last_insert_rowid(database_));
    message_.bind(2, now_);
    message_.run();
  }
  commit_.run();
}

}  // namespace stela::bench
