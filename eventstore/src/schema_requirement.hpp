// Rows of `stela_participants` that represent a migration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stela {

/// The participant that represents a migration which shuts out older writers: version 0.1.0 refuses
/// to append when it finds a participant that it doesn't have.
struct SchemaRequirement {
  std::string_view module;
  std::int64_t number = 0;

  std::string participant() const;
  /// Nothing for any other participant.
  static std::optional<SchemaRequirement> parse(std::string_view participant) noexcept;
};

}  // namespace stela
