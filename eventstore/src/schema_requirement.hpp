// Rows of `stela_participants` that represent a migration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stela {

/// What stands in `stela_participants` in the name of a migration that shuts out older writers. A
/// process reads the participants whenever they change, and refuses to write if it knows the
/// module, and fewer of its migrations.
struct SchemaRequirement {
  std::string_view module;
  std::int64_t number = 0;

  std::string participant() const;
  /// Nothing for any other participant.
  static std::optional<SchemaRequirement> parse(std::string_view participant) noexcept;
};

}  // namespace stela
