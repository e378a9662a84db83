#include "raw_decisions.hpp"

#include <stela/framework/detail/metadata.hpp>

#include <cstring>
#include <stdexcept>

namespace stela::bench {
namespace {

constexpr std::int64_t now_us = 1'795'000'000'000'000;
constexpr const char* standpoint_sql =
    "SELECT (SELECT coalesce(max(sequence), 0) FROM events), (SELECT epoch FROM tag_epoch)";

/// The columns of an event, then those of its tags.
std::string select(const char* rest) {
  return std::string{"SELECT "} + raw_event_columns + ", t.part, t.tags, t.checksum FROM " + rest;
}

bool has_tag(std::string_view tags, std::string_view tag) {
  for (std::size_t at = tags.find(tag); at != std::string_view::npos; at = tags.find(tag, at + 1)) {
    const std::size_t end = at + tag.size();
    if ((at == 0 || tags[at - 1] == ' ') && (end == tags.size() || tags[end] == ' ')) return true;
  }
  return false;
}

}  // namespace

RawViews::RawViews(const std::string& path)
    : database_{path, {}},
      begin_{database_, "BEGIN"},
      end_{database_, "COMMIT"},
      standpoint_{database_, standpoint_sql},
      stream_{database_, select("events AS e LEFT JOIN event_tags AS t ON t.sequence = e.sequence "
                                "WHERE e.stream = (SELECT s.stream FROM streams AS s "
                                "WHERE s.name = ?1) AND e.sequence <= ?2 ORDER BY e.version")
                             .c_str()},
      tag_{database_, select("tag_index AS i JOIN events AS e ON e.sequence = i.sequence "
                             "JOIN event_tags AS t ON t.sequence = i.sequence "
                             "WHERE i.tag = ?1 AND i.sequence <= ?2 ORDER BY i.sequence")
                          .c_str()},
      last_of_tag_{database_,
                   select("tag_index AS i JOIN events AS e ON e.sequence = i.sequence "
                          "JOIN event_tags AS t ON t.sequence = i.sequence "
                          "WHERE i.tag = ?1 AND i.sequence <= ?2 ORDER BY i.sequence DESC LIMIT 1")
                       .c_str()},
      rows_{database_} {}

RawViews::Position RawViews::begin() {
  begin_.run();
  standpoint_.step();
  position_ = {standpoint_.integer(0), standpoint_.integer(1)};
  standpoint_.reset();
  return position_;
}

void RawViews::check(const RawStatement& row, std::string_view tag) {
  rows_.check(row);
  const std::string_view tags = row.bytes(raw_event_column_count + 1);
  if (tags.empty()) return;
  const std::int64_t sum =
      raw_tags_checksum(row.integer(0), row.integer(raw_event_column_count), tags);
  if (sum != row.integer(raw_event_column_count + 2)) throw std::runtime_error{"damaged tags"};
  if (!tag.empty() && !has_tag(tags, tag)) throw std::runtime_error{"two tags have one hash"};
}

RawDecider::RawDecider(const std::string& path, const RawOptions& options)
    : database_{path, options},
      begin_{database_, "BEGIN IMMEDIATE"},
      roll_back_{database_, "ROLLBACK"},
      commit_{database_, "COMMIT"},
      standpoint_{database_, standpoint_sql},
      head_{database_,
            "SELECT s.stream, e.version, e.sequence FROM streams AS s JOIN events AS e "
            "ON e.stream = s.stream WHERE s.name = ?1 ORDER BY e.version DESC LIMIT 1"},
      later_{database_, "SELECT 1 FROM tag_index WHERE tag = ?1 AND sequence > ?2 LIMIT 1"},
      stream_{database_, "INSERT INTO streams (name) VALUES (?1)"},
      event_{database_,
             "INSERT INTO events (sequence, stream, version, kind, recorded_at, event_id, "
             "correlation_id, causation_id, published_before, metadata, checksum, payload) "
             "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, 0, ?8, ?9, ?10)"},
      event_tags_{database_,
                  "INSERT INTO event_tags (sequence, part, tags, checksum) VALUES (?1, 0, ?2, ?3)"},
      tag_{database_, "INSERT INTO tag_index (tag, sequence, kind) VALUES (?1, ?2, ?3)"},
      rows_{database_} {
  const Context context = sample_context();
  correlation_ = context.correlation_id;
  metadata_ = metadata::encode(context);
  event_.bind_blob(6, event_id_);
  event_.bind_text(7, correlation_);
  event_.bind_text(8, metadata_);
}

RawDecider::Head RawDecider::head_of(std::string_view stream) {
  head_.bind_text(1, stream);
  Head head;
  if (head_.step()) head = {head_.integer(0), head_.integer(1), head_.integer(2)};
  head_.reset();
  return head;
}

bool RawDecider::holds(const Decision& decision, const Head& head) {
  if (decision.depends_on_stream && head.sequence > decision.position.head) return false;
  later_.bind(1, decision.tag.hash);
  later_.bind(2, decision.position.head);
  const bool is_later = later_.step();
  later_.reset();
  return !is_later;
}

bool RawDecider::append(const Decision& decision) {
  begin_.run();
  const Head head = head_of(decision.stream);
  if (!holds(decision, head)) {
    roll_back_.run();
    return false;
  }
  insert(decision, head);
  commit_.run();
  return true;
}

void RawDecider::insert(const Decision& decision, const Head& head) {
  standpoint_.step();
  const std::int64_t sequence = standpoint_.integer(0) + 1;
  const bool same_epoch = standpoint_.integer(1) == decision.position.epoch;
  standpoint_.reset();
  if (!same_epoch) throw std::logic_error{"nobody tags history here"};
  std::int64_t stream = head.stream;
  if (stream == 0) {
    stream_.bind_text(1, decision.stream);
    stream_.run();
    stream = sqlite3_last_insert_rowid(database_);
  }
  const std::uint64_t random = dice_.next();
  std::memcpy(event_id_.data(), &sequence, sizeof sequence);
  std::memcpy(event_id_.data() + 8, &random, sizeof random);
  const RawEvent event{.sequence = sequence,
                       .version = head.version + 1,
                       .recorded_at = now_us + sequence,
                       .event_id = event_id_,
                       .correlation_id = correlation_,
                       .metadata = metadata_,
                       .payload = decision.payload};
  event_.bind(1, sequence);
  event_.bind(2, stream);
  event_.bind(3, event.version);
  event_.bind(4, decision.kind);
  event_.bind(5, event.recorded_at);
  event_.bind(9, rows_.checksum(event, decision.stream, decision.kind));
  event_.bind_blob(10, decision.payload);
  event_.run();
  event_tags_.bind(1, sequence);
  event_tags_.bind_text(2, decision.tag.name);
  event_tags_.bind(3, raw_tags_checksum(sequence, 0, decision.tag.name));
  event_tags_.run();
  tag_.bind(1, decision.tag.hash);
  tag_.bind(2, sequence);
  tag_.bind(3, decision.kind);
  tag_.run();
}

}  // namespace stela::bench
