#include "raw_events.hpp"

#include <stela/framework/detail/metadata.hpp>

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace stela::bench {
namespace {

constexpr const char* insert_event_sql =
    "INSERT INTO events (sequence, stream, version, kind, recorded_at, event_id, correlation_id,"
    " causation_id, published_before, metadata, checksum, payload) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
constexpr const char* insert_message_sql =
    "INSERT INTO outbox_messages (partition, sequence, stream) VALUES (?1, ?2, ?3)";
constexpr const char* insert_event_tags_sql =
    "INSERT INTO event_tags (sequence, part, tags, checksum) VALUES (?1, 0, ?2, ?3)";
constexpr const char* insert_tag_sql =
    "INSERT INTO tag_index (tag, sequence, kind) VALUES (?1, ?2, ?3)";
constexpr std::int64_t now_us = 1'795'000'000'000'000;

std::int64_t kind_of(RawDatabase& database, std::string_view type) {
  RawStatement query{database, "SELECT kind FROM event_kinds WHERE type = ?1"};
  query.bind_text(1, type);
  query.step();
  return query.integer(0);
}

}  // namespace

void mark_all_published(RawDatabase& database) {
  database.execute(
      "UPDATE outbox_partitions SET"
      " published_through = (SELECT coalesce(max(sequence), 0) FROM events)");
  database.execute("DELETE FROM outbox_messages");
}

RawTag::RawTag(std::string text)
    : name{std::move(text)},
      hash{static_cast<std::int64_t>(XXH3_64bits(name.data(), name.size()))} {}

RawAppender::RawAppender(const std::string& path, const RawOptions& options, std::size_t streams)
    : database_{path, options},
      begin_{database_, "BEGIN IMMEDIATE"},
      event_{database_, insert_event_sql},
      message_{database_, insert_message_sql},
      event_tags_{database_, insert_event_tags_sql},
      tag_{database_, insert_tag_sql},
      commit_{database_, "COMMIT"},
      heads_(streams) {
  RawStatement head{database_,
                    "SELECT s.stream, (SELECT max(e.version) FROM events AS e "
                    "WHERE e.stream = s.stream) FROM streams AS s WHERE s.name = ?1"};
  for (std::size_t i = 0; i < streams; ++i) {
    const StreamId stream = basket_id(i).stream();
    head.bind_text(1, stream.name());
    head.step();
    heads_[i] = {head.integer(0), head.integer(1)};
    head.reset();
  }
  kinds_ = {kind_of(database_, LineAdded::event_type.name),
            kind_of(database_, LineDropped::event_type.name)};
  sequence_ = database_.integer("SELECT max(sequence) FROM events");
  const Context context = sample_context();
  correlation_ = context.correlation_id;
  metadata_ = metadata::encode(context);

  event_.bind_blob(6, {event_id_.data(), event_id_.size()});
  event_.bind_text(7, correlation_);
  event_.bind_text(10, metadata_);
  message_.bind(1, database_.integer("SELECT partition FROM outbox_partitions"));
}

void RawAppender::append(std::size_t number, std::span<const NewEvent> events,
                         std::span<const RawTag* const> tags) {
  Head& head = heads_[number];
  begin_.run();
  for (const NewEvent& event : events) {
    const std::uint64_t random = dice_.next();
    std::memcpy(event_id_.data(), &sequence_, sizeof sequence_);
    std::memcpy(event_id_.data() + 8, &random, sizeof random);
    event_.bind(1, ++sequence_);
    event_.bind(2, head.stream);
    event_.bind(9, head.version);
    event_.bind(3, ++head.version);
    const std::int64_t kind = kinds_[event.type == LineAdded::event_type.name ? 0 : 1];
    event_.bind(4, kind);
    event_.bind(5, now_us + sequence_);
    event_.bind(11, static_cast<std::int64_t>(random));
    event_.bind_blob(12, event.payload);
    event_.run();
    message_.bind(2, sequence_);
    message_.bind(3, head.stream);
    message_.run();
    if (!tags.empty()) insert_tags(tags, kind);
  }
  commit_.run();
}

void RawAppender::insert_tags(std::span<const RawTag* const> tags, std::int64_t kind) {
  joined_tags_.clear();
  for (const RawTag* const tag : tags) {
    if (!joined_tags_.empty()) joined_tags_ += ' ';
    joined_tags_ += tag->name;
  }
  event_tags_.bind(1, sequence_);
  event_tags_.bind_text(2, joined_tags_);
  event_tags_.bind(3, static_cast<std::int64_t>(dice_.next()));
  event_tags_.run();
  tag_.bind(2, sequence_);
  tag_.bind(3, kind);
  for (const RawTag* const tag : tags) {
    tag_.bind(1, tag->hash);
    tag_.run();
  }
}

RawReader::RawReader(const std::string& path)
    : database_{path, {}},
      stream_{database_,
              "SELECT kind, payload FROM events "
              "WHERE stream = (SELECT s.stream FROM streams AS s WHERE s.name = ?1) "
              "ORDER BY version"},
      all_{database_, "SELECT kind, payload FROM events ORDER BY sequence"},
      added_kind_{kind_of(database_, LineAdded::event_type.name)} {}

}  // namespace stela::bench
