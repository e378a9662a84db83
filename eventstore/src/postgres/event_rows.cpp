#include "postgres/event_rows.hpp"

#include "postgres/checksums.hpp"
#include "postgres/server_session.hpp"
#include "postgres_sql/streams.hpp"

#include <stela/framework/error.hpp>

#include <chrono>
#include <set>

namespace stela::postgres {
namespace {

constexpr std::string_view event_columns =
    "SELECT p.sequence, p.version, p.kind, k.type, k.version, k.publishes, p.recorded_at, "
    "p.event_id, p.correlation_id, p.causation_id, p.published_before, p.metadata, p.checksum";

/// The columns above, and those that follow them.
enum Column : int {
  sequence,
  version,
  kind,
  event_type,
  schema_version,
  publishes,
  recorded_at,
  event_id,
  correlation,
  causation,
  published_before,
  metadata,
  checksum,
  payload,
  stream_number,
  stream_name,
};

/// In bytes. Quick pages omit larger payloads.
constexpr std::size_t large_payload = 8'192;

enum class StreamColumns : std::uint8_t { name_and_number, number };

std::string bounded_sql(std::string_view where, std::string_view order, std::string_view limit,
                        StreamColumns columns) {
  const bool has_names = columns == StreamColumns::name_and_number;
  std::string sql{event_columns};
  sql.append(", p.payload, p.stream").append(has_names ? ", s.name" : "");
  sql.append(" FROM (SELECT e.*, sum(octet_length(e.payload)) OVER (ORDER BY e.").append(order);
  sql.append(" ROWS UNBOUNDED PRECEDING) - octet_length(e.payload) AS before ");
  sql.append("FROM stela.events AS e WHERE ").append(where);
  sql.append(" ORDER BY e.").append(order).append(" LIMIT ").append(limit).append(") AS p ");
  if (has_names) sql.append("LEFT JOIN stela.streams AS s ON s.stream = p.stream ");
  sql.append("LEFT JOIN stela.event_kinds AS k ON k.kind = p.kind WHERE p.before < ");
  sql.append(std::to_string(page_bytes)).append(" ORDER BY p.").append(order);
  return sql;
}

std::string quick_sql(std::string_view where, std::string_view order, std::string_view limit) {
  std::string sql = quick_columns();
  sql.append(" FROM (SELECT e.* FROM stela.events AS e WHERE ");
  sql.append(where).append(" ORDER BY e.").append(order).append(" LIMIT ").append(limit);
  sql.append(") AS p LEFT JOIN stela.event_kinds AS k ON k.kind = p.kind ORDER BY p.");
  return sql.append(order);
}

}  // namespace

std::string quick_columns() {
  std::string sql{event_columns};
  sql.append(", CASE WHEN octet_length(p.payload) <= ").append(std::to_string(large_payload));
  return sql.append(" THEN p.payload END, p.stream");
}

std::string page_sql(std::string_view where, std::string_view order, std::string_view limit) {
  return bounded_sql(where, order, limit, StreamColumns::name_and_number);
}

PageSql::PageSql(std::string_view where, std::string_view order, std::string_view limit)
    : quick{quick_sql(where, order, limit)},
      bounded{bounded_sql(where, order, limit, StreamColumns::number)} {}

void StreamNumbers::learn(Connection& connection, const Result& rows) {
  if (connection.run() != run_) names_.clear();
  run_ = connection.run();
  std::set<std::int64_t> unknown;
  for (int row = 0; row < rows.rows(); ++row) {
    const std::int64_t number = rows.integer(row, stream_number);
    if (names_.find(number) == names_.end()) unknown.insert(number);
  }
  if (unknown.empty()) return;
  Array numbers = Array::of_int8();
  for (const std::int64_t number : unknown) numbers.add(number);
  auto found = connection.rows(sql::streams{.streams = numbers});
  invalid_.clear();
  while (found.step()) {
    try {
      names_.emplace(found.stream(), StreamId::parse(found.name()));
    } catch (const UsageError& e) {
      invalid_.emplace(found.stream(), e.what());
    }
  }
}

const StreamId* StreamNumbers::find(std::int64_t number) const {
  const auto known = names_.find(number);
  if (known != names_.end()) return &known->second;
  if (const auto found = invalid_.find(number); found != invalid_.end()) {
    throw UsageError{found->second};
  }
  return nullptr;
}

const StreamId& StreamNames::find(std::string_view name) {
  const auto known = names_.find(name);
  if (known != names_.end()) return known->second;
  return names_.emplace(std::string{name}, StreamId::parse(name)).first->second;
}

bool EventRows::fill(EventPage& page, const Result& rows, std::int64_t wanted) {
  std::int64_t bytes = 0;
  try {
    for (int row = 0; row < rows.rows(); ++row) {
      if (is_left_out(rows, row)) return false;
      const StoredEvent event = read(rows, row);
      if (succession != nullptr) succession->check(event);
      if (!page.add(event)) return false;
      if (succession != nullptr) succession->pass(event);
      bytes += static_cast<std::int64_t>(event.payload.size());
    }
  } catch (const Error&) {
    if (page.empty()) throw;
    // The next page begins with this row and reports it.
    return false;
  }
  return rows.rows() < wanted && bytes < page_bytes;
}

bool EventRows::begins_with_large(const Result& rows) noexcept {
  return rows.rows() > 0 && is_left_out(rows, 0);
}

bool EventRows::is_left_out(const Result& rows, int row) noexcept {
  return rows.is_null(row, payload);
}

bool EventRows::has_large(const Result& rows) noexcept {
  for (int row = 0; row < rows.rows(); ++row) {
    if (rows.bytes(row, payload).size() > large_payload) return true;
  }
  return false;
}

bool EventRows::ends_early(const Result& rows) noexcept {
  return bytes_of(rows) >= page_bytes;
}

std::int64_t EventRows::bytes_of(const Result& rows) noexcept {
  std::int64_t bytes = 0;
  for (int row = 0; row < rows.rows(); ++row) {
    bytes += static_cast<std::int64_t>(rows.bytes(row, payload).size());
  }
  return bytes;
}

std::int64_t EventRows::sequence_of(const Result& rows, int row) noexcept {
  return rows.integer(row, sequence);
}

Array EventRows::sequences_of(const Result& rows) {
  Array sequences = Array::of_int8();
  for (int row = 0; row < rows.rows(); ++row) sequences.add(sequence_of(rows, row));
  return sequences;
}

std::int64_t EventRows::stream_number_of(const Result& rows, int row) noexcept {
  return rows.integer(row, stream_number);
}

const StreamId& EventRows::stream_of(const Result& rows, int row) {
  if (stream != nullptr) return *stream;
  const std::int64_t number = rows.integer(row, sequence);
  try {
    if (numbers != nullptr) {
      const StreamId* const known = numbers->find(stream_number_of(rows, row));
      if (known != nullptr) return *known;
    } else if (!rows.is_null(row, stream_name)) {
      return names.find(rows.bytes(row, stream_name));
    }
  } catch (const UsageError& e) {
    throw CorruptRow{number, e.what()};
  }
  throw CorruptRow{number, "its stream has no name"};
}

const EventKind& EventRows::kind_of(const Result& rows, int row) {
  if (rows.is_null(row, event_type)) {
    throw CorruptRow{rows.integer(row, sequence), "it is of a kind that doesn't exist"};
  }
  const KindTable::Key key{.number = static_cast<std::int32_t>(rows.integer(row, kind)),
                           .type = rows.bytes(row, event_type),
                           .version = static_cast<int>(rows.integer(row, schema_version)),
                           .publishes = rows.integer(row, publishes) != 0};
  const EventKind*& met = met_kinds[static_cast<std::uint32_t>(key.number) % met_kinds.size()];
  if (met == nullptr || !key.is(*met)) met = &kinds.find(key);
  return *met;
}

StoredEvent EventRows::read(const Result& rows, int row) {
  StoredEvent event{
      .sequence = GlobalSequence{rows.integer(row, sequence)},
      .stream = stream_of(rows, row),
      .version = StreamVersion{rows.integer(row, version)},
      .kind = kind_of(rows, row),
      .id = to_uuid(rows.bytes(row, event_id)),
      .recorded_at = Timestamp{std::chrono::microseconds{rows.integer(row, recorded_at)}},
      .correlation = rows.bytes(row, correlation),
      .causation_id = to_uuid(rows.bytes(row, causation)),
      .metadata = rows.bytes(row, metadata),
      .published_before = StreamVersion{rows.integer(row, published_before)},
      .payload = rows.bytes(row, payload)};
  if (event.version.value() < 1 || event.id.is_nil()) {
    throw CorruptRow{event.sequence.value(), "its version or id is invalid"};
  }
  if (rows.integer(row, checksum) != event_checksum(event)) {
    throw CorruptRow{event.sequence.value(), "it doesn't match its checksum"};
  }
  if (tags != nullptr) {
    const auto found = tags->find(event.sequence.value());
    if (found != tags->end()) event.tags = found->second;
  }
  return event;
}

}  // namespace stela::postgres
