#include "raw_relay.hpp"

#include <chrono>
#include <string_view>

namespace stela::bench {
namespace {

constexpr const char* next_sql =
    "SELECT m.sequence, e.event_id, e.metadata, e.payload, e.stream, e.version, e.kind,"
    " e.recorded_at, e.correlation_id, e.causation_id, e.published_before "
    "FROM outbox_messages AS m CROSS JOIN events AS e ON e.sequence = m.sequence "
    "WHERE m.partition = ?1 AND m.sequence > ?2 ORDER BY m.sequence LIMIT ?3";
constexpr const char* delete_sql =
    "DELETE FROM outbox_messages WHERE partition = ?1 AND sequence BETWEEN ?2 AND ?3";
constexpr const char* advance_sql =
    "UPDATE outbox_partitions SET published_through = ?2, broker_sequence = ?3, broker_id = ?4,"
    " flight_count = ?5, flight_through = ?2, removed = removed + ?5, published = published + ?5"
    " WHERE partition = ?1";
constexpr const char* log_sql =
    "INSERT INTO outbox_batches (partition, last_sequence, first_sequence, count, published_at,"
    " first_broker, last_broker) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// A UUID as text.
void write_id(std::string_view bytes, std::array<char, 36>& text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::size_t at = 0;
  for (std::size_t i = 0; i < bytes.size() && i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text[at++] = '-';
    const auto byte = static_cast<unsigned char>(bytes[i]);
    text[at++] = digits[byte >> 4];
    text[at++] = digits[byte & 15];
  }
}

std::int64_t now_us() {
  using namespace std::chrono;
  return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

RawRelay::RawRelay(const std::string& path, const RawOptions& options, int batch)
    : database_{path, options},
      next_{database_, next_sql},
      name_{database_, "SELECT name FROM streams WHERE stream = ?1"},
      begin_{database_, "BEGIN IMMEDIATE"},
      delete_{database_, delete_sql},
      advance_{database_, advance_sql},
      log_{database_, log_sql},
      commit_{database_, "COMMIT"} {
  const std::int64_t partition = database_.integer("SELECT partition FROM outbox_partitions");
  for (RawStatement* const statement : {&next_, &delete_, &advance_, &log_}) {
    statement->bind(1, partition);
  }
  next_.bind(3, batch);
}

std::int64_t RawRelay::drain() {
  std::int64_t drained = 0;
  while (publish_batch() != 0) {
    mark();
    drained += count_;
  }
  return drained;
}

std::int64_t RawRelay::publish_batch() {
  count_ = 0;
  next_.bind(2, last_);
  while (next_.step()) {
    last_ = next_.integer(0);
    if (count_++ == 0) first_ = last_;
    read_event();
    broker_.store(event_.stream, {event_.id.data(), event_.id.size()}, next_.bytes(2),
                  next_.bytes(3));
  }
  next_.reset();
  return count_ > 0 ? last_ : 0;
}

void RawRelay::read_event() {
  write_id(next_.bytes(1), event_.id);
  event_.stream = name_of(next_.integer(4));
  event_.version = next_.integer(5);
  event_.kind = next_.integer(6);
  event_.recorded_at = next_.integer(7);
  event_.correlation = next_.bytes(8);
  event_.causation = next_.bytes(9);
  event_.published_before = next_.integer(10);
}

std::string_view RawRelay::name_of(std::int64_t stream) {
  const auto number = static_cast<std::size_t>(stream);
  if (number >= names_.size()) names_.resize(number + 1);
  if (names_[number].empty()) {
    name_.bind(1, stream);
    name_.step();
    names_[number] = name_.bytes(0);
    name_.reset();
  }
  return names_[number];
}

void RawRelay::mark() {
  const auto broker = static_cast<std::int64_t>(broker_.last());
  begin_.run();
  delete_.bind(2, first_);
  delete_.bind(3, last_);
  delete_.run();
  advance_.bind(2, last_);
  advance_.bind(3, broker);
  advance_.bind_text(4, broker_.last_id());
  advance_.bind(5, count_);
  advance_.run();
  log_.bind(2, last_);
  log_.bind(3, first_);
  log_.bind(4, count_);
  log_.bind(5, now_us());
  log_.bind(6, broker - count_ + 1);
  log_.bind(7, broker);
  log_.run();
  commit_.run();
}

}  // namespace stela::bench
