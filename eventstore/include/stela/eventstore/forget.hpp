// Forgetting a person: destroys the keys of personal fields, after a fence in the store.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/store.hpp>
#include <stela/framework/event_type.hpp>
#include <stela/framework/keyring.hpp>
#include <stela/framework/stream_id.hpp>

#include <cereal/cereal.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace stela {

struct ForgetOptions {
  /// Who asked for it, and why: an id, a ticket, a paragraph.
  std::string by = {};
  std::string reason = {};
  /// Only fields kept for these purposes; "" is the default one. Empty: all fields.
  std::vector<std::string> purposes = {};
};

/// The outcome of forgetting.
struct ForgetReport {
  /// The fence; 0 if there was nothing to forget.
  GlobalSequence fence = {};
  std::vector<KeyInfo> keys = {};
  /// Keys that a hold keeps alive: `hold` says until when and why. Forget them again later.
  std::vector<KeyInfo> kept = {};
};

/// Forgets all fields sealed for `subject`: appends the fence, then destroys the keys. From then on
/// every reader finds the fields forgotten: here at once, and within a minute wherever else the key
/// store is open. Appends with fields sealed earlier are refused with SubjectForgotten.
///
/// Fields with a purpose under a hold (`Keys::hold`) stay as they are. A hold set after the fence
/// is too late.
///
/// If it is interrupted after the fence, the next opening of the store with its keys completes it.
/// Clear text in read models stays there until their projectors remove it, and backups keep their
/// contents: see docs/guides/forget-a-person.md. UsageError if the store was opened without keys.
STELA_EVENTSTORE_EXPORT ForgetReport forget(Store& store, const StreamId& subject,
                                            const ForgetOptions& options);

/// Personal fields can be recorded for the subject again, with new keys. Forgotten fields stay
/// forgotten.
STELA_EVENTSTORE_EXPORT void allow_again(Store& store, const StreamId& subject);

/// The fence, in the stream `forgotten-<name of the subject>`: no later event is sealed with these
/// keys. It is published like any other event, so that other programs can delete their copies. It
/// holds no personal data; don't put any into `by` and `reason`.
struct Forgotten {
  static constexpr std::string_view category = "forgotten";
  static constexpr EventType event_type{"stela.forgotten", 1, should_publish};

  /// The ids of the keys, and their purposes.
  std::vector<std::string> keys = {};
  std::vector<std::string> purposes = {};
  std::string by = {};
  std::string reason = {};

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(keys), CEREAL_NVP(purposes), CEREAL_NVP(by), CEREAL_NVP(reason));
  }
};

/// The subject of the fence in this stream: "guest-m1". UsageError for another stream.
STELA_EVENTSTORE_EXPORT StreamId forgotten_subject(const StreamId& stream);

}  // namespace stela
