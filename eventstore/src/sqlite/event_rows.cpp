#include "sqlite/event_rows.hpp"

#include "sqlite/checksum.hpp"
#include "sqlite_sql.hpp"

#include <stela/framework/error.hpp>

#include <cstring>
#include <string>

namespace stela::sqlite {
namespace {

/// Columns of the queries read_*.sql.
enum Column : int {
  sequence,
  stream_number,
  version,
  kind,
  recorded_at,
  event_id,
  correlation_id,
  causation_id,
  published_before,
  metadata,
  checksum,
  payload,
};

[[noreturn]] void corrupt(std::int64_t sequence, const std::string& problem) {
  throw CorruptEvent{"event " + std::to_string(sequence) + " is corrupt: " + problem +
                     "; restore it from a backup"};
}

Uuid to_uuid(std::string_view bytes) {
  Uuid::Bytes raw{};
  if (bytes.size() == raw.size()) std::memcpy(raw.data(), bytes.data(), raw.size());
  return Uuid{raw};
}

}  // namespace

const StreamId& StreamNames::find(std::int64_t number, Connection& connection) {
  const auto known = names_.find(number);
  if (known != names_.end()) return known->second;
  Query query = connection.query(sql::stream_name);
  if (!query.bind(1, number).step()) {
    throw CorruptEvent{"stream number " + std::to_string(number) + " has no name"};
  }
  return names_.emplace(number, StreamId::parse(query.text(0))).first->second;
}

bool EventRows::fill(EventPage& page, Query& query) {
  while (query.step()) {
    if (page.empty()) {
      page.add(read(query));
      continue;
    }
    try {
      if (!page.add(read(query))) return false;
    } catch (const Error&) {
      // The next page begins with this row, and reports it.
      return false;
    }
  }
  return true;
}

StoredEvent EventRows::read(Query& row) {
  const std::int64_t at = row.integer(sequence);
  const EventKind* const known = in_transaction ? kinds.find_in_transaction(row.integer(kind))
                                                : kinds.find(row.integer(kind), connection);
  if (known == nullptr) {
    corrupt(at, "it is of kind " + std::to_string(row.integer(kind)) + ", which doesn't exist");
  }
  const StoredEvent event{
      .sequence = GlobalSequence{at},
      .stream = stream != nullptr ? *stream : names.find(row.integer(stream_number), connection),
      .version = StreamVersion{row.integer(version)},
      .kind = *known,
      .id = to_uuid(row.blob(event_id)),
      .recorded_at = Timestamp{std::chrono::microseconds{row.integer(recorded_at)}},
      .correlation = row.text(correlation_id),
      .causation_id = to_uuid(row.blob(causation_id)),
      .metadata = row.text(metadata),
      .published_before = StreamVersion{row.integer(published_before)},
      .payload = row.blob(payload)};
  if (event.version.value() < 1 || event.id.is_nil()) corrupt(at, "its version or id is invalid");
  if (row.integer(checksum) != event_checksum(event)) {
    corrupt(at, "its payload doesn't match its checksum");
  }
  return event;
}

}  // namespace stela::sqlite
