// The event that says that somebody was forgotten.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/framework/event_type.hpp>
#include <stela/framework/stream_id.hpp>

#include <cereal/cereal.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace stela {

/// The fence, in the stream `forgotten-<name of the subject>`: no later event is sealed with these
/// keys. It is published as any other event, so that other programs delete what they copied. It
/// holds no personal data; don't put any into `by` and `reason`.
struct Forgotten {
  static constexpr std::string_view category = "forgotten";
  static constexpr EventType event_type{"stela.forgotten", 1, should_publish};

  /// The ids of the keys, and the purposes that they were for.
  std::vector<std::string> keys = {};
  std::vector<std::string> purposes = {};
  std::string by = {};
  std::string reason = {};

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(keys), CEREAL_NVP(purposes), CEREAL_NVP(by), CEREAL_NVP(reason));
  }
};

/// Whom the fence in this stream is about: "guest-m1". UsageError for another stream.
STELA_EVENTSTORE_EXPORT StreamId forgotten_subject(const StreamId& stream);

}  // namespace stela
