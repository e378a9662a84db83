#include "simulation/outcome.hpp"

namespace stela::sim {

std::string_view to_string(Row row) noexcept {
  static constexpr std::array<std::string_view, row_count> names{
      "ack",
      "ack of a duplicate",
      "wrong last sequence",
      "wrong last id",
      "no answer in time",
      "disconnected",
      "reply of an old session",
      "refused for ever",
      "rejected",
      "full",
      "misconfigured",
      "found: ours",
      "found: nothing new",
      "found: aged out",
      "stop: unreadable",
      "stop: broker_lost",
      "stop: store_went_back",
      "stop: foreign_writer",
  };
  return names[static_cast<std::size_t>(row)];
}

}  // namespace stela::sim
