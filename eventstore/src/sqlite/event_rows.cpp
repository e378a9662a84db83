#include "sqlite/event_rows.hpp"

#include "database/checksum.hpp"
#include "sqlite/tag_rows.hpp"
#include "sqlite_sql/streams.hpp"

#include <stela/framework/error.hpp>

#include <cstring>
#include <string>

namespace stela::sqlite {
namespace {

[[noreturn]] void corrupt(std::int64_t sequence, const std::string& problem) {
  throw CorruptRow{sequence, problem};
}

Uuid to_uuid(std::string_view bytes) {
  Uuid::Bytes raw{};
  if (bytes.size() == raw.size()) std::memcpy(raw.data(), bytes.data(), raw.size());
  return Uuid{raw};
}

std::string_view bytes_of(const Uuid& id) {
  return {reinterpret_cast<const char*>(id.bytes().data()), id.bytes().size()};
}

}  // namespace

std::int64_t last_sequence(Connection& connection) {
  auto row = connection.rows(sql::last_sequence{});
  row.step();
  return row.last();
}

std::int64_t last_indexed_sequence(Connection& connection) {
  auto row = connection.rows(sql::last_indexed_sequence{});
  row.step();
  return row.last();
}

StreamHead find_head(Connection& connection, KindTable& kinds, const StreamId& stream) {
  StreamHead head;
  auto row = connection.rows(sql::stream_head{.name = stream.name()});
  if (!row.step()) return head;
  head.stream = row.stream();
  const std::optional<std::int64_t> version = row.version();
  if (!version) return head;
  head.version = *version;
  if (!row.is_there()) {
    throw CorruptEvent{"the last event of '" + stream.name() + "', version " +
                       std::to_string(head.version) + ", is missing; restore it from a backup"};
  }
  const EventKind* const kind = kinds.find(row.kind(), connection);
  if (kind == nullptr) {
    throw CorruptEvent{"the last event of '" + stream.name() + "' is of an unknown kind"};
  }
  head.published = kind->publishes ? head.version : row.published_before();
  return head;
}

std::int64_t insert_stream(Connection& connection, const StreamId& stream) {
  connection.run(sql::insert_stream{.name = stream.name()});
  return sqlite3_last_insert_rowid(connection.handle());
}

void insert_row(Connection& connection, std::int64_t stream, const StoredEvent& event) {
  const bool has_cause = !event.causation_id.is_nil();
  connection.run(sql::insert_event{
      .sequence = event.sequence.value(),
      .stream = stream,
      .version = event.version.value(),
      .kind = event.kind.number,
      .recorded_at = event.recorded_at,
      .event_id = bytes_of(event.id),
      .correlation_id = or_null(event.correlation),
      .causation_id = or_null(has_cause ? bytes_of(event.causation_id) : std::string_view{}),
      .published_before = event.published_before.value(),
      .metadata = or_null(event.metadata),
      .checksum = database::event_checksum(event),
      .payload = event.payload});
}

const StreamId& StreamNames::find(std::int64_t number, Connection& connection) {
  const auto known = names_.find(number);
  if (known != names_.end()) return known->second;
  auto row = connection.rows(sql::stream_name{.stream = number});
  if (!row.step()) {
    throw CorruptEvent{"its stream, number " + std::to_string(number) + ", has no name"};
  }
  return names_.emplace(number, StreamId::parse(row.name())).first->second;
}

bool EventRows::fill(EventPage& page, sql::event_row& rows) {
  try {
    while (rows.step()) {
      const StoredEvent event = read(rows);
      if (succession != nullptr) succession->check(event);
      if (!page.add(event)) return false;
      if (succession != nullptr) succession->pass(event);
    }
    return true;
  } catch (const Error&) {
    if (page.empty()) throw;
    // The next page begins with this row, and reports it.
    return false;
  }
}

const StreamId& EventRows::stream_of(std::int64_t sequence, std::int64_t number) {
  if (stream != nullptr) return *stream;
  try {
    return names.find(number, connection);
  } catch (const CorruptEvent& e) {
    corrupt(sequence, e.what());
  } catch (const UsageError& e) {
    corrupt(sequence, e.what());
  }
}

const EventKind& EventRows::kind_of(std::int64_t sequence, std::int64_t number) {
  const EventKind*& met = met_kinds[static_cast<std::uint64_t>(number) % met_kinds.size()];
  if (met != nullptr && met->number == number) return *met;
  const EventKind* const known = kinds.find(number, connection);
  if (known == nullptr) {
    corrupt(sequence, "it is of kind " + std::to_string(number) + ", which doesn't exist");
  }
  met = known;
  return *known;
}

template <class Row>
StoredEvent EventRows::read_columns(const Row& row) {
  const std::int64_t sequence = row.sequence();
  StoredEvent event{.sequence = GlobalSequence{sequence},
                    .stream = stream_of(sequence, row.stream()),
                    .version = StreamVersion{row.version()},
                    .kind = kind_of(sequence, row.kind()),
                    .id = to_uuid(row.event_id()),
                    .recorded_at = row.recorded_at(),
                    .correlation = row.correlation_id(),
                    .causation_id = to_uuid(row.causation_id()),
                    .metadata = row.metadata(),
                    .published_before = StreamVersion{row.published_before()},
                    .payload = row.payload()};
  if (event.version.value() < 1 || event.id.is_nil()) {
    corrupt(sequence, "its version or id is invalid");
  }
  if (row.checksum() != database::event_checksum(event))
    corrupt(sequence, "it doesn't match its checksum");
  return event;
}

StoredEvent EventRows::read(const sql::event_row& row) {
  StoredEvent event = read_columns(row);
  if (tags != nullptr) {
    read_tags(connection, event.sequence.value(), *tags);
    event.tags = *tags;
  }
  return event;
}

StoredEvent EventRows::read(const sql::tagged_event::Row& row) {
  StoredEvent event = read_columns(row);
  const std::int64_t sequence = event.sequence.value();
  if (row.has_more()) {
    read_tags(connection, sequence, *tags);
    event.tags = *tags;
    return event;
  }
  event.tags = row.tags();
  if (!event.tags.empty()) check_tags(sequence, 0, event.tags, row.tags_checksum());
  return event;
}

}  // namespace stela::sqlite
