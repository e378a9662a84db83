// The payment provider's events. They come from outside: no aggregate of the shop decides them.
#pragma once

#include <stela/framework.hpp>
#include <stela/framework/extern_templates.hpp>

#include <cstdint>
#include <string>

namespace orders {

struct PaymentReceived {
  static constexpr stela::EventType event_type{"payment.received", 1, stela::local};
  std::string order;
  std::string reference;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(order), CEREAL_NVP(reference));
  }
};

struct PaymentDeclined {
  static constexpr stela::EventType event_type{"payment.declined", 1, stela::local};
  std::string order;
  std::string reason;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(order), CEREAL_NVP(reason));
  }
};

}  // namespace orders

// Compiled in domain.cpp.
STELA_EXTERN_EVENT(orders::PaymentReceived);
STELA_EXTERN_EVENT(orders::PaymentDeclined);
