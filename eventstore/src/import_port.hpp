// What an import asks of an engine.
#pragma once

#include "database/connection.hpp"
#include "event_lines.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stela {

/// Stores events that have their numbers already.
/// Threads: one at a time.
class EventImport {
 public:
  /// How many events were stored, and why the next one can't be; empty if all were.
  struct Outcome {
    std::size_t stored = 0;
    std::string problem = {};
  };

  virtual ~EventImport() = default;
  /// Inside a transaction that nobody else writes beside, after the last event of the store.
  virtual Outcome store(database::Connection& connection, std::span<const ParsedEvent> events) = 0;
  /// The checksums of rows that the importer stores itself.
  virtual std::int64_t append_id_checksum(std::string_view append_id, std::int64_t first,
                                          std::int64_t last) const = 0;
  virtual std::int64_t fact_checksum(std::string_view name, std::string_view value) const = 0;
};

/// Why an event can't be imported whose stream is at another version.
inline std::string describe_misfit(const ParsedEvent& event, std::int64_t version) {
  return "version " + std::to_string(event.version.value()) + " of '" + event.stream.name() +
         "' follows version " + std::to_string(version);
}

}  // namespace stela
