// What a store knows of its personal fields moves with it: whose keys sealed them.
#pragma once

#include <stela/eventstore/transfer.hpp>

namespace stela {

/// The key store, its newest key that an event was sealed with, and the types with sealed fields.
/// Loading is a UsageError if the store was opened with another key store.
class KeyState final : public StateTransfer {
 public:
  std::string_view prefix() const noexcept override { return "stela_"; }
  void save(database::Connection& connection, Row row) override;
  void prepare(database::Database&) override {}
  void load(database::Connection& connection, std::string_view table,
            std::string_view rows) override;
  void finish(database::Connection&) override {}
};

}  // namespace stela
