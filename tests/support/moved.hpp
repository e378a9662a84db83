// An event with a personal field.
#pragma once

#include <stela/framework.hpp>
#include <stela/framework/personal.hpp>

#include <string>

namespace stela::test {

/// A guest, who is the stream's subject, has a new address.
struct Moved {
  static constexpr EventType event_type{"guest.moved", 1, local};
  Personal<std::string> address;
  static constexpr auto subject = stream_is_subject;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(address));
  }
};

}  // namespace stela::test
