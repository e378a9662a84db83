// Rows of `stela_participants` that stand for a migration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stela {

/// What stands in `stela_participants` in the name of a migration that shuts out older writers:
/// those of 0.1.0 refuse to append when they find a participant that they don't have.
struct SchemaRequirement {
  std::string_view module;
  std::int64_t number = 0;

  std::string participant() const;
  /// Nothing if the participant is another.
  static std::optional<SchemaRequirement> parse(std::string_view participant) noexcept;
};

}  // namespace stela
