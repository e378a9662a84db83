// A participant that every append needs and that does nothing.
#pragma once

#include <stela/framework/event_store.hpp>

#include <span>
#include <string_view>

namespace stela::test {

class Bystander final : public TransactionParticipant {
 public:
  std::string_view name() const noexcept override { return "bystander"; }
  std::string_view detail() const noexcept override { return "1"; }
  void on_append(Transaction&, std::span<const StoredEvent>) override {}
};

}  // namespace stela::test
