#include "schema_requirement.hpp"

#include <charconv>
#include <system_error>

namespace stela {
namespace {

constexpr std::string_view requirement_prefix = "schema:";

}  // namespace

std::string SchemaRequirement::participant() const {
  return std::string{requirement_prefix} + std::string{module} + ':' + std::to_string(number);
}

std::optional<SchemaRequirement> SchemaRequirement::parse(std::string_view participant) noexcept {
  if (!participant.starts_with(requirement_prefix)) return std::nullopt;
  participant.remove_prefix(requirement_prefix.size());
  const std::size_t colon = participant.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  SchemaRequirement requirement{.module = participant.substr(0, colon)};
  const char* const end = participant.data() + participant.size();
  const auto [last, error] =
      std::from_chars(participant.data() + colon + 1, end, requirement.number);
  if (error != std::errc{} || last != end) return std::nullopt;
  return requirement;
}

}  // namespace stela
